-- Every counter needs the slots that the routines select. Nothing has been changed if this check stops the script.
SET @slotted_problem = (
  SELECT CONCAT(
           'counter ''', LEFT(few.counter_name, 100), ''' has fewer than {{ package.options.setup_slots() }} slots. ',
           'Source resize.sql, which gives every counter {{ package.options.setup_slots() }} slots')
    FROM (
      SELECT counter_name
        FROM {{ table.name }}
       GROUP BY counter_name
      HAVING SUM(IF(counter_id BETWEEN 1 AND {{ package.options.setup_slots() }}, 1, 0)) < {{ package.options.setup_slots() }}
       LIMIT 1
    ) AS few
);
{% include "files/_raise.sql" %}
