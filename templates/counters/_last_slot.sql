-- Reads the end of the index. Without LEFT(), MariaDB reads every slot: the parameter is longer than the column.
SELECT MAX(counter_id)
  INTO {{ variable }}
  FROM {{ table.name }}
 WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }});
