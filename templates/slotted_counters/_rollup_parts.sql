{#- The condition for the records of a roll-up. -#}
{% block same -%}
{%- for (name, value) in rollup.model.same -%}
{{ name.typed() }} = {{ value.sql() }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The same before another condition. -#}
{% block same_and -%}
{%- for (name, value) in rollup.model.same -%}
{{ name.typed() }} = {{ value.sql() }}
   AND {% endfor -%}
{%- endblock %}

{#- Counts in the column that the roll-up has not written and that were not imported. -#}
{% block not_imported -%}
(
  parent.{{ rollup.model.target.typed() }} > COALESCE(written.total, 0)
  OR parent.{{ rollup.model.target.typed() }} < 0 AND COALESCE(written.total, 0) = 0
)
{%- endblock %}

{#- The changes of a batch as a table. -#}
{% block changes -%}
JSON_TABLE(v_changes, '$[*]' COLUMNS (
  record {{ rollup.json_type() }} PATH '$.record',
  total DECIMAL(65, 0) PATH '$.total',
  old DECIMAL(65, 0) PATH '$.old',
  written DECIMAL(65, 0) PATH '$.written'))
{%- endblock %}
