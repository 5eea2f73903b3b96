-- Deletes only slots whose count is 0: another connection may have incremented one since.
{{ table.over_checks()|before(0) }}DELETE target
  FROM {{ slots|indent(2) }}
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.{{ table.slot() }} = locked.slot
 WHERE {{ table.key.equals("target.") }}
   AND target.{{ table.slot() }} <> {{ table.first_slot() }}
   AND target.{{ table.count() }} = 0;
