{%- if package.options.per_counter() -%}
{{ table.last_slot("v_slots", "") }}

{% endif %}
{#- -#}
-- CHAR_LENGTH() rejects a name that a server without strict mode has truncated. The truncated name can be equal to a
-- shorter name with trailing spaces.
{% if package.options.random() -%}
SET v_slot = {{ table.any_slot("RAND()", table.slots()) }};
{{ table.update_slot(change, "v_slot", "") }}
{%- else if package.options.nodes.is_some() -%}
{{ table.update_on_node(change) }}
{%- else -%}
{% include "shared/_if_single_server.sql" %} THEN
  {{ table.update_slot(change, table.own_slot(), "")|indent(2) }}
ELSE
  {{ table.update_on_node(change)|indent(2) }}
END IF;
{%- endif %}
{%- if package.options.per_counter() %}
IF ROW_COUNT() = 0 THEN
  -- A resize has retired the slot, and before it all higher slots of this node. Selects a lower one, so that transactions lock
  -- slots in one direction. Slot 1 would be contended if all connections selected it.
{%- if package.options.random() %}
  REPEAT
    SET v_slots = GREATEST(v_slot - 1, 1);
    SET v_slot = {{ table.any_slot("RAND()", table.slots())|indent(4) }};
    {{ table.update_slot(change, "v_slot", "")|indent(4) }}
  UNTIL ROW_COUNT() > 0 OR COALESCE(v_slots, 1) = 1 END REPEAT;
{%- else %}
  BEGIN
    {{ table.slot_of_node()|indent(4) }}
    REPEAT
      SET v_slots = GREATEST(v_slot - 1, 1),
          v_slot = {{ table.slot_of_call()|indent(10) }};
      {{ table.update_slot(change, "v_slot", "")|indent(6) }}
    UNTIL ROW_COUNT() > 0 OR COALESCE(v_slots, 1) = 1 END REPEAT;
  END;
{%- endif %}
END IF;
{%- endif %}
IF ROW_COUNT() = 0 THEN
  -- The counter has fewer slots, or it was created after the snapshot of this transaction. Every counter has slot 1.
  {{ table.update_slot(change, "1", "")|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    -- In the normal case, the name needs no validation.
    {{ r.check_name()|indent(4) }}
    {{ r.if_interrupted("counter_name = p_counter_name
   AND counter_id = 1")|before(4) }}{{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;
END IF;
