{% include "files/_banner.sql" %}
--
-- Test data: the counters counterName1 to counterName1500, each with
{%- if package.options.per_counter() %} a random number of slots, at most 50.
{%- else %} {{ table.slots() }} slots.
{%- endif %}
-- Deletes these counters first and changes no other counter. Ends with ANALYZE TABLE and a summary.

{% include "files/_session_begin.sql" %}

DELETE FROM {{ table.name }}
 WHERE counter_name REGEXP '^counterName[0-9]+$';

INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT CONCAT('counterName', one.number),
       slot.number,
       CONCAT('counterDescription', one.number),
       NOW(),
       0
  FROM (
    -- LIMIT materializes the subquery, so that RAND() is evaluated once for each counter.
    SELECT numbers.number, {% if package.options.per_counter() %}1 + FLOOR(RAND() * 50){% else %}{{ table.slots() }}{% endif %} AS slots
      FROM {{ table.numbers("1500")|indent(6) }} AS numbers
     WHERE numbers.number <= 1500
     LIMIT 1500
  ) AS one
 CROSS JOIN {{ table.numbers("50")|indent(1) }} AS slot
 WHERE slot.number <= one.slots
 ORDER BY one.number, slot.number;

ANALYZE TABLE {{ table.name }};

SELECT COUNT(*) AS 'Rows inserted',
       ROUND(COUNT(*) / COUNT(DISTINCT counter_name)) AS 'Avg. rows per counter'
  FROM {{ table.name }}
 WHERE counter_name REGEXP '^counterName[0-9]+$';

{% include "files/_session_end.sql" %}
