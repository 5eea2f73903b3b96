{%- if package.options.bounded && r.of != R::Check -%}
CALL {{ r.sibling(R::Check) }}({{ r.speaker_text() }}, {{ table.key.arguments() }});
{%- else -%}
{#- One condition in the normal case. -#}
IF {{ table.key.invalid() }} THEN
{%- for column in table.key.columns() %}
  IF {{ column.parameter.typed() }} IS NULL THEN
    {{ r.signal_column(E::KeyNull, column.name.name())|indent(4) }}
  END IF;
{%- if let Some(misfit) = column.misfit() %}
  IF {{ misfit }} THEN
    {{ r.signal_column(E::KeyMisfit, column.name.name())|indent(4) }}
  END IF;
{%- endif %}
{%- endfor %}
END IF;
{%- endif %}
