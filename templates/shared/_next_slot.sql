{% if table.keyed() -%}
-- Slot 0 is the last: a compaction can move counts into it at the same time.
SELECT COALESCE(MAX(slot), 0)
  INTO v_next
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND slot < v_slot
   AND slot <> 0;
{%- else -%}
{%- let lowest = table.lowest_slots() -%}
-- From the highest slot on. The lowest slots of the nodes are the last: a resize can move counts into them at the same time.
SELECT COALESCE(
         MAX(IF({{ lowest }}, NULL, counter_id)),
         MAX(IF({{ lowest }}, counter_id, NULL)),
         1)
  INTO v_next
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND IF(v_slot BETWEEN 1 AND {{ table.nodes() }},
          counter_id BETWEEN 1 AND v_slot - 1,
          counter_id < v_slot OR {{ lowest }});
{%- endif %}
