{% import "macros.sql" as m -%}
{{ sql.banner() }}
-- Test data: deletes the counters counterName1 to counterName1500 and creates them with
{%- if o.per_counter() %} up to 50 slots each, at random{% else %} {{ o.setup_slots() }} slots each{% endif %}.
-- Changes no other counter.

DELETE FROM {{ o.table }}
 WHERE counter_name REGEXP '^counterName[1-9][0-9]{0,3}$' AND SUBSTRING(counter_name, 12) + 0 <= 1500
 LIMIT 1000000;
INSERT INTO {{ o.table }} (counter_name, counter_id, description, start_date)
SELECT CONCAT('counterName', one.number), slot.number, CONCAT('counterDescription', one.number), NOW()
{%- if o.per_counter() %}
  -- LIMIT materializes the subquery: RAND() is evaluated once for each counter.
  FROM (SELECT number, 1 + FLOOR(RAND() * 50) AS slots FROM {{ m::numbers(1500) }} AS names LIMIT 1500) AS one
  JOIN {{ m::numbers(50) }} AS slot
{%- else %}
  FROM (SELECT number, {{ o.setup_slots() }} AS slots FROM {{ m::numbers(1500) }} AS names LIMIT 1500) AS one
  JOIN {{ m::numbers(o.setup_slots()) }} AS slot{% endif %}
    ON slot.number <= one.slots
 ORDER BY one.number, slot.number;
COMMIT AND NO CHAIN NO RELEASE;
ANALYZE TABLE {{ o.table }};
SELECT COUNT(*) AS 'Rows inserted',
       ROUND(COUNT(*) / COUNT(DISTINCT counter_name)) AS 'Avg. rows per counter'
  FROM {{ o.table }}
 WHERE counter_name REGEXP '^counterName[0-9]+$';
