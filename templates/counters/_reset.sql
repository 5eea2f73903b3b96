-- The subquery locks slot 1, then the others starting with the highest, as increments do, and counts them. If there are other slots than
-- before, nothing is changed. LIMIT ends the range at the last slot: the next row belongs to another counter.
{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET counter = IF(counter_id = 1, COALESCE({{ value }}, 0), 0),
       start_date = IF({{ restart }}, NOW(), start_date)
 WHERE {{ table.key.equals("") }}
   AND v_slots = (SELECT COUNT(*) FROM {{ table.all_slots()|indent(3) }})
 ORDER BY counter_name DESC, counter_id DESC
 LIMIT v_slots;
