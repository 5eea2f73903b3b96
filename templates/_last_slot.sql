-- Not MAX(): given a parameter, MariaDB would read every slot of the counter for it.
SELECT counter_id
  INTO {{ variable }}
  FROM {{ c.table() }}
 WHERE {{ c.key_is("") }}
 ORDER BY counter_id DESC
 LIMIT 1;
