BEGIN
  -- Outside a transaction, SAVEPOINT creates nothing, and RELEASE fails.
  DECLARE EXIT HANDLER FOR 1305
    SET {{ variable }} = TRUE;
  SAVEPOINT slotted_steps;
  RELEASE SAVEPOINT slotted_steps;
END;
