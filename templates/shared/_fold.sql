-- Moves the counts of the slots after {{ last }} to slot {{ table.first_slot() }}. The subquery locks the slots in the order of
-- the key and sums them, and the same statement writes exactly these slots. STRAIGHT_JOIN makes the server
-- run the subquery first: at READ COMMITTED, a slot that another connection inserts in between could otherwise
-- be summed but not written. If slot {{ table.first_slot() }} does not exist, another connection has deleted the {{ table.subject() }}, and no row
-- is changed.
{{ table.over_checks()|before(0) }}UPDATE (
    SELECT {{ table.slot() }} AS slot,
           MIN({{ table.slot() }}) OVER () AS first_slot,
           SUM(IF({{ table.slot() }} > {{ last }}, {{ table.count() }}, 0)) OVER () AS moved
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }}
{%- if !table.keyed() %}
       AND ({{ table.slot() }} = {{ table.first_slot() }} OR {{ table.slot() }} > {{ last }})
{%- endif %}
       FOR UPDATE
  ) AS locked
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.{{ table.slot() }} = locked.slot
   SET target.{{ table.count() }} = IF(target.{{ table.slot() }} = {{ table.first_slot() }}, target.{{ table.count() }} + locked.moved, 0)
 WHERE {{ table.key.equals("target.") }}
   AND locked.first_slot = {{ table.first_slot() }};

-- Deletes only slots whose count is 0: another connection may have incremented one since.
{{ table.over_checks()|before(0) }}DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.slot() }} > {{ last }}
   AND {{ table.count() }} = 0;
