-- Moves the counts to slot {{ into }}. The subquery locks the slots and sums them, and the same statement writes exactly these
-- slots. STRAIGHT_JOIN makes the server run the subquery first: at READ COMMITTED, a slot that another connection
-- inserts in between could otherwise be summed but not written. If slot {{ into }} does not exist, another connection has
-- deleted the {{ table.subject() }}, and no row is changed.
{{ table.over_checks()|before(0) }}UPDATE (
    SELECT slot,
           SUM(IF(slot = {{ into }}, 1, 0)) OVER () AS first_slots,
           SUM(IF(slot = {{ into }}, 0, amount)) OVER () AS moved
      FROM {{ slots|indent(6) }}
  ) AS moving
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.{{ table.slot() }} = moving.slot
   SET target.{{ table.count() }} = IF(target.{{ table.slot() }} = {{ into }}, target.{{ table.count() }} + moving.moved, 0)
 WHERE {{ table.key.equals("target.") }}
   AND moving.first_slots = 1;
