-- All slots that are missing. The lock on slot 1 keeps a reset or a delete from meeting a part of them.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT first.counter_name, number, first.description, first.start_date, 0
  FROM {{ table.name }} AS first
 CROSS JOIN {{ table.numbers(table.most_slots())|indent(1) }} AS numbers
 WHERE {{ table.key.equals("first.") }}
   AND first.counter_id = 1
   AND number BETWEEN 2 AND {{ slots }}
 ORDER BY number DESC
   FOR UPDATE{{ table.package.options.servers.of("first") }}
ON DUPLICATE KEY UPDATE counter = {{ table.name }}.counter;
