-- In the order of the key, so that two sessions that create the same counter do not deadlock.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT {{ table.key.arguments() }}, number, {{ description }}, NOW(), IF(number = 1, COALESCE({{ value }}, 0), 0)
  FROM {{ table.numbers(most)|indent(2) }} AS numbers
 WHERE number <= {{ slots }}
 ORDER BY number;
