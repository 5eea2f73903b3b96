-- The first slot is the last: a resize or a compaction can move counts into it at the same time.
SELECT COALESCE(MAX({{ table.slot() }}), {{ table.first_slot() }})
  INTO v_next
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.slot() }} < v_slot
   AND {{ table.slot() }} <> {{ table.first_slot() }};
