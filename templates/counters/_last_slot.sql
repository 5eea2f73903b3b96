-- One step to the end of the index. LEFT() is for MariaDB: by a name that may be longer than the column it would read
-- every slot.
SELECT MAX(counter_id)
  INTO {{ variable }}
  FROM {{ table.name }}
 WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }});
