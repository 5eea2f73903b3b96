  IF ROW_COUNT() = 0 THEN
    -- No row was changed: the counter is unknown, or it already has these values. A locking read sees the same rows
    -- as the UPDATE, unlike a read of the snapshot.
    {{ table.over_snapshot()|before(4) }}SELECT COUNT(*)
      INTO v_rows
      FROM {{ table.name }}
     WHERE counter_name = p_counter_name
       AND counter_id = 1
      LOCK IN SHARE MODE;
    IF v_rows = 0 THEN
      {{ r.signal(E::UnknownCounter)|indent(6) }}
    END IF;
  END IF;
