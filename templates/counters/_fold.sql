-- The subquery locks the slots and sums them, and the statement changes exactly these slots. If slot {{ into }} does not exist,
-- another session has deleted the counter, and nothing is changed.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, start_date, counter)
SELECT {{ table.key.arguments() }}, slot, NOW(), share
  FROM (
    SELECT slot,
           IF(slot = {{ into }}, SUM(amount) OVER (), 0) AS share,
           SUM(slot = {{ into }}) OVER () AS found
      FROM {{ table.retired_slots(into, retired)|indent(6) }}
  ) AS folded
 WHERE found = 1
ON DUPLICATE KEY UPDATE counter = folded.share;
