{%- if c.keyed() -%}
{#- The good path makes one test. -#}
IF {{ c.key_wrong() }} THEN
{%- for column in c.keys() %}
  IF {{ column.parameter.typed() }} IS NULL THEN
    {{ c.signal_key(E::KeyNull, column)|indent(4) }}
  END IF;
{%- if let Some(misfit) = column.misfit() %}
  IF {{ misfit }} THEN
    {{ c.signal_key(E::KeyMisfit, column)|indent(4) }}
  END IF;
{%- endif %}
{%- endfor %}
END IF;
{%- else -%}
IF p_counter_name IS NULL OR RTRIM(p_counter_name) = '' THEN
  {{ c.signal(E::NameEmpty)|indent(2) }}
END IF;
IF CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
  {{ c.signal(E::NameTooLong)|indent(2) }}
END IF;
{%- endif %}
