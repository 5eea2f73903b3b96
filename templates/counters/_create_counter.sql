-- In the order of the key, so that two sessions that create the same counter do not deadlock.
INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT {{ table.key.arguments() }}, numbers.number, {{ description }}, NOW(), IF(numbers.number = 1, COALESCE({{ value }}, 0), 0)
  FROM {{ table.numbers(most)|indent(2) }} AS numbers
 WHERE numbers.number <= {{ slots }}
 ORDER BY numbers.number;
