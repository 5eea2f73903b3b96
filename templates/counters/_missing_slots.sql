number > 1
   AND NOT EXISTS (
    SELECT *
      FROM {{ table.name }} AS existing
     WHERE existing.counter_name = first.counter_name
       AND existing.counter_id = number
  )
