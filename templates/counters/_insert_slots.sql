-- The lock on slot 1 keeps a concurrent delete from leaving a part of a counter. An existing slot is not changed.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT slot_1.counter_name, number, slot_1.description, slot_1.start_date, 0
  FROM {{ table.name }} AS slot_1
 CROSS JOIN {{ table.numbers(table.most_slots())|indent(1) }} AS numbers
 WHERE {{ chosen }}
   AND slot_1.counter_id = 1
   AND number <= {{ table.slots_wanted() }}
 ORDER BY slot_1.counter_name, number
 {{ table.package.options.servers.share("slot_1") }}
ON DUPLICATE KEY UPDATE counter = {{ table.name }}.counter;
