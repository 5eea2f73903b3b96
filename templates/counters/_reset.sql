{{ table.over_checks()|before(0) }}UPDATE {{ table.all_slots()|indent(2) }}
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.counter_id = locked.slot
   SET target.counter = IF(target.counter_id = 1, COALESCE({{ value }}, 0), 0),
       target.start_date = IF({{ restart }}, NOW(), target.start_date)
 WHERE {{ table.key.equals("target.") }};
