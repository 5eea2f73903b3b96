number > 1
   AND NOT EXISTS (
    SELECT *
      FROM {{ table.name }} AS existing
     WHERE existing.counter_name = slot_1.counter_name
       AND existing.counter_id = number
  )
