{{ c.banner() }}
--
-- Test data: the counters counterName1 to counterName1500, each with
{%- if c.per_counter() %} a random number of slots, at most 50.
{%- else %} {{ c.slots() }} slots.
{%- endif %}
-- Removes those of an earlier run first and touches no other counter. Then ANALYZE and a summary.

{% include "_session_begin.sql" %}

DELETE FROM {{ c.table() }}
 WHERE counter_name REGEXP '^counterName[0-9]+$';

INSERT INTO {{ c.table() }} (counter_name, counter_id, description, start_date, counter)
SELECT CONCAT('counterName', one.number),
       slot.number,
       CONCAT('counterDescription', one.number),
       NOW(),
       0
  FROM (
    -- LIMIT makes the server keep this list, so that each counter gets its random number once.
    SELECT numbers.number, {% if c.per_counter() %}1 + FLOOR(RAND() * 50){% else %}{{ c.slots() }}{% endif %} AS slots
      FROM (
        {{ c.numbers("1500")|indent(8) }}
      ) AS numbers
     WHERE numbers.number <= 1500
     LIMIT 1500
  ) AS one
 CROSS JOIN (
   {{ c.numbers("50")|indent(3) }}
 ) AS slot
 WHERE slot.number <= one.slots
 ORDER BY one.number, slot.number;

ANALYZE TABLE {{ c.table() }};

SELECT COUNT(*) AS 'Rows inserted',
       ROUND(COUNT(*) / COUNT(DISTINCT counter_name)) AS 'Avg. rows per counter'
  FROM {{ c.table() }}
 WHERE counter_name REGEXP '^counterName[0-9]+$';

{% include "_session_end.sql" %}
