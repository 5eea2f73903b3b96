-- One locking read holds what it has summed until the same rows are written. It has to come first, hence
-- STRAIGHT_JOIN: with the table first, a row that another session makes meanwhile (at READ COMMITTED) could be summed
-- and not written. Slot {{ c.first_slot() }} is read with the others, so that locks are taken in the order of the key, and nothing is
-- moved where it is gone because somebody has just deleted the {{ c.subject() }}.
{{ c.over_snapshot() }}
UPDATE (
    SELECT {{ c.slot_column() }} AS slot,
           MIN({{ c.slot_column() }}) OVER () AS first_slot,
           SUM(IF({{ c.slot_column() }} > {{ last }}, {{ c.count_column() }}, 0)) OVER () AS moved
      FROM {{ c.table() }}
     WHERE {{ c.key_is("")|indent(4) }}
{%- if !c.keyed() %}
       AND ({{ c.slot_column() }} = {{ c.first_slot() }} OR {{ c.slot_column() }} > {{ last }})
{%- endif %}
       FOR UPDATE
  ) AS seen
  STRAIGHT_JOIN {{ c.table() }} AS one
    ON one.{{ c.slot_column() }} = seen.slot
   SET one.{{ c.count_column() }} = IF(one.{{ c.slot_column() }} = {{ c.first_slot() }}, one.{{ c.count_column() }} + seen.moved, 0)
 WHERE {{ c.key_is("one.") }}
   AND seen.first_slot = {{ c.first_slot() }};

-- Only what is still empty: somebody may have counted there since.
{{ c.over_snapshot() }}
DELETE FROM {{ c.table() }}
 WHERE {{ c.key_is("") }}
   AND {{ c.slot_column() }} > {{ last }}
   AND {{ c.count_column() }} = 0;
