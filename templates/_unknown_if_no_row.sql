  IF ROW_COUNT() = 0 THEN
    -- No row changed, which need not mean that there is none. A locking read sees what the change saw.
    {{ c.over_snapshot()|indent(4) }}
    SELECT COUNT(*)
      INTO v_rows
      FROM {{ c.table() }}
     WHERE {{ c.key_is("")|indent(4) }}
       AND counter_id = 1
      LOCK IN SHARE MODE;
    IF v_rows = 0 THEN
      {{ c.signal(E::UnknownCounter)|indent(6) }}
    END IF;
  END IF;
