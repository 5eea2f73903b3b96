{% import "macros.sql" as m -%}
{% include "files/_banner.sql" %}
-- Creates the slots that counters with fewer than {{ o.setup_slots() }} slots lack. The totals do not change.
-- CALL {{ package.routine(R::Resize).expect("named counters have it").name() }}(counter_name, NULL) removes the slots above {{ o.setup_slots() }}.

-- The lock on slot 1 keeps a delete at the same time from leaving a part of a counter.
{{ sql.set("sql_big_selects=ON", 0) }}INSERT INTO {{ o.table }} (counter_name, counter_id, description, start_date, counter)
SELECT slot_1.counter_name, number, slot_1.description, slot_1.start_date, 0
  FROM (SELECT * FROM {{ o.table }} WHERE counter_id = 1 FOR UPDATE) AS slot_1
 CROSS JOIN {{ m::numbers(o.setup_slots()) }} AS numbers
 WHERE number > 1
 ORDER BY slot_1.counter_name, number
ON DUPLICATE KEY UPDATE counter = {{ o.table }}.counter;
COMMIT AND NO CHAIN NO RELEASE;
