-- With MAX(), MySQL reads nothing but the end of the index, a third of the time; given a parameter, MariaDB would read
-- every slot of the counter for it.
SELECT /*!80000 MAX( */ counter_id /*!80000 ) */
  INTO {{ variable }}
  FROM {{ c.table() }}
 WHERE {{ c.key_is("") }}
 ORDER BY counter_id DESC
 LIMIT 1;
