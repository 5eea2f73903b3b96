{%- if package.options.per_counter() -%}
{{ table.last_slot("v_slots") }}
{% endif %}
{#- -#}
-- The look at the length is for names that a server without strict mode has cut: they may equal a shorter one and its
-- spaces.
{% if package.options.random() -%}
SET v_slot = {{ table.any_slot() }};
{{ table.update_slot(amount, "v_slot") }}
{%- else -%}
{% include "shared/_if_single_server.sql" %} THEN
  {{ table.update_slot(amount, table.own_slot())|indent(2) }}
ELSE
  BEGIN
    {{ table.slot_of_node()|indent(4) }}
    {{ table.update_slot(amount, "v_slot")|indent(4) }}
  END;
END IF;
{%- endif %}
IF ROW_COUNT() = 0 THEN
  -- The slot is gone since it was picked (a resize), or the counter is younger than the snapshot of this
  -- transaction. Slot 1 is always there. Picking again would loop in an old snapshot.
  {{ table.update_slot(amount, "1")|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    {{ r.unknown_counter()|indent(4) }}
  END IF;
END IF;
