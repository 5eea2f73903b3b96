BEGIN
  -- Outside a transaction, SAVEPOINT creates nothing, and RELEASE fails.
  DECLARE EXIT HANDLER FOR 1305
    SET v_autocommit = TRUE;

  SAVEPOINT slotted_steps;
  RELEASE SAVEPOINT slotted_steps;
  -- In a transaction, an UPDATE that finds too little would keep a lock on the slot until the end.
  {{ table.over_snapshot()|before(2) }}SELECT MAX({{ table.count() }})
    INTO v_have
    FROM {{ table.name }}
   WHERE {{ own|indent(2) }}
     AND {{ table.slot() }} = v_slot;
END;
