{{ c.over_snapshot() }}
UPDATE {{ c.table() }}
   SET counter = counter + {{ amount }}
 WHERE counter_name = p_counter_name
   AND counter_id = {{ slot }};
