{{ table.over_checks()|before(0) }}UPDATE {{ table.spread(slots)|indent(2) }}
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.counter_id = spread.slot
   SET target.counter = spread.amount
 WHERE {{ table.key.equals("target.") }};
