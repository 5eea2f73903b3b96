{% include "files/_banner.sql" %}
--
-- Gives every counter with fewer than {{ package.options.setup_slots() }} slots the missing ones. The totals do not change. Source it before
-- create_procedures.sql if the counters were created with fewer slots. Counters with more slots are valid too: after
-- create_procedures.sql, CALL {{ package.routine(R::Resize).expect("counters have it").typed() }}('...', NULL) removes the slots that no increment selects.

INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT first.counter_name, numbers.number, first.description, first.start_date, 0
  FROM {{ table.name }} AS first
 CROSS JOIN {{ table.numbers(table.slots_wanted())|indent(1) }} AS numbers
 WHERE first.counter_id = 1
   AND numbers.number <= {{ table.slots_wanted() }}
   AND NOT EXISTS (
    SELECT *
      FROM {{ table.name }} AS existing
     WHERE existing.counter_name = first.counter_name
       AND existing.counter_id = numbers.number
  )
 ORDER BY first.counter_name, numbers.number
ON DUPLICATE KEY UPDATE counter = {{ table.name }}.counter;
