-- A change of a slot that another node writes at the same time can fail.
DECLARE EXIT HANDLER FOR 1213, 3101, 1180
  BEGIN
    SET v_tries = v_tries + 1;
    IF NOT v_steps OR v_tries > {{ STEP_TRIES }} THEN
      RESIGNAL;
    END IF;
    DO SLEEP(0.01);
  END;
