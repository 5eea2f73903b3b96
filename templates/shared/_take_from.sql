{{ table.over_checks()|before(0) }}UPDATE {{ table.spread(slots)|indent(2) }}
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.{{ table.slot() }} = spread.slot
   SET target.{{ table.count() }} = spread.amount
 WHERE {{ table.key.equals("target.") }};
