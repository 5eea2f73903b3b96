UPDATE {{ table.name }}
   SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
       start_date = IF(p_restart, NOW(), start_date)
 WHERE {{ table.key.equals("") }}
   AND counter_id = v_next;
SET v_slot = v_next,
    v_tries = 0;
