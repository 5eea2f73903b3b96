{{ table.over_checks()|before(0) }}DELETE target
  FROM {{ table.first_apart_and_others()|indent(2) }}
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.slot = locked.slot
 WHERE {{ table.key.equals("target.") }}
   AND target.slot > 0
   AND target.`count` = 0;
