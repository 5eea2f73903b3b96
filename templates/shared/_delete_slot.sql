DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.slot() }} = v_next;
SET v_slot = v_next,
    v_tries = 0;
