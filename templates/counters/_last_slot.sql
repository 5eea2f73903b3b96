-- MAX() is answered from the end of the index. Without LEFT(), MariaDB reads every slot, because the parameter is
-- longer than the column.
SELECT MAX(counter_id)
  INTO {{ variable }}
  FROM {{ table.name }}
 WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }});
