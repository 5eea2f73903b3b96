-- Not MAX(): given a parameter, MariaDB would read every slot of the counter for it.
SELECT counter_id
  INTO {{ variable }}
  FROM {{ c.table() }}
 WHERE counter_name = p_counter_name
 ORDER BY counter_id DESC
 LIMIT 1;
