{%- if package.options.per_counter() -%}
{{ table.last_slot("v_slots", "") }}
{% endif -%}
-- Each node of a cluster has slots of its own. CHAR_LENGTH() rejects a name that a session without strict mode has truncated.
{% if package.options.random() -%}
SET v_slot = {{ table.slot_of_call() }};
{{ table.update_slot(change, "v_slot", condition) }}
{%- else -%}
{{ table.update_slot(change, table.slot_of_call(), condition) }}
{%- endif %}
IF ROW_COUNT() = 0 THEN
  CALL {{ r.sibling(R::AddElsewhere) }}({{ r.speaker_text() }}, p_counter_name, {{ amount }}, {{ table.slots() }});
END IF;
