IF v_next > 0 THEN
  UPDATE {{ table.name }}
     SET `count` = 0
   WHERE {{ table.key.equals("")|indent(2) }}
     AND slot = v_next;
ELSE
  INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
  VALUES ({{ table.key.arguments() }}, 0, COALESCE(p_value, 0))
  ON DUPLICATE KEY UPDATE `count` = COALESCE(p_value, 0);
END IF;
SET v_slot = v_next,
    v_tries = 0;
