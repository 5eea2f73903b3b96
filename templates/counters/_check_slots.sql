{%- if package.options.bounded && r.of != R::CheckSlots -%}
CALL {{ r.sibling(R::CheckSlots) }}({{ r.speaker_text() }}, {{ slots }});
{%- else -%}
IF {{ slots }} < 1 OR {{ slots }} > {{ MAX_SLOTS }} THEN
  {{ r.signal(E::SlotsOutOfRange)|indent(2) }}
END IF;
{{ r.check_nodes(slots) }}
{%- endif %}
