-- One locking read holds what it has summed until the same rows are written. It has to come first, hence
-- STRAIGHT_JOIN: with the table first, a row that another session makes meanwhile (at READ COMMITTED) could be summed
-- and not written. Slot {{ table.first_slot() }} is read with the others, so that locks are taken in the order of the key, and nothing is
-- moved where it is gone because somebody has just deleted the {{ table.subject() }}.
{{ table.over_snapshot() }}
UPDATE (
    SELECT {{ table.slot() }} AS slot,
           MIN({{ table.slot() }}) OVER () AS first_slot,
           SUM(IF({{ table.slot() }} > {{ last }}, {{ table.count() }}, 0)) OVER () AS moved
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }}
{%- if !table.keyed() %}
       AND ({{ table.slot() }} = {{ table.first_slot() }} OR {{ table.slot() }} > {{ last }})
{%- endif %}
       FOR UPDATE
  ) AS seen
  STRAIGHT_JOIN {{ table.name }} AS one
    ON one.{{ table.slot() }} = seen.slot
   SET one.{{ table.count() }} = IF(one.{{ table.slot() }} = {{ table.first_slot() }}, one.{{ table.count() }} + seen.moved, 0)
 WHERE {{ table.key.equals("one.") }}
   AND seen.first_slot = {{ table.first_slot() }};

-- Only what is still empty: somebody may have counted there since.
{{ table.over_snapshot() }}
DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.slot() }} > {{ last }}
   AND {{ table.count() }} = 0;
