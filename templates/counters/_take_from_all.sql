{{ table.over_checks()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
SELECT first.counter_name, spread.slot, first.description, first.start_date, spread.amount
  FROM {{ table.spread(table.all_slots_and_mark().as_str())|indent(2) }}
  STRAIGHT_JOIN {{ table.name }} AS first
    ON {{ table.key.equals("first.")|indent(1) }}
   AND first.counter_id = 1
ON DUPLICATE KEY UPDATE counter = spread.amount;
