{%- if package.options.bounded && r.of != R::Check -%}
CALL {{ r.sibling(R::Check) }}({{ r.speaker_text() }}, p_counter_name);
{%- else -%}
IF p_counter_name IS NULL OR RTRIM(p_counter_name) = '' THEN
  {{ r.signal(E::NameEmpty)|indent(2) }}
END IF;
IF CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
  {{ r.signal(E::NameTooLong)|indent(2) }}
END IF;
{%- endif %}
