{%- include "_slot_into_variable.sql" %}

{% if c.keyed() -%}
-- On the primary key, the only unique one, this locks one record and no gap.
{{ c.upsert(amount, "v_slot") }}
{%- else -%}
{{ c.update_slot(amount, "v_slot") }}
IF ROW_COUNT() = 0 THEN
  -- The slot is gone since it was picked (a resize), or the counter is younger than the snapshot of this
  -- transaction. Slot 1 is always there. Picking again would loop in an old snapshot.
  {{ c.update_slot(amount, "1")|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    {{ c.refuse_key()|indent(4) }}
  END IF;
END IF;
{%- endif %}
