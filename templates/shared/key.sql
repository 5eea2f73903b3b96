{#- Parts of statements that depend on the columns of the key. Each block is a part. -#}

{#- The columns: a, b -#}
{% block list -%}
{%- for column in key.columns() -%}
{{ column.name.typed() }}{% if !loop.last %}, {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The columns of a SELECT list, a line each. -#}
{% block lines -%}
{%- for column in key.columns() -%}
{{ column.name.typed() }}{% if !loop.last %},
{% endif %}
{%- endfor -%}
{%- endblock %}

{#- The arguments: p_a, p_b -#}
{% block arguments -%}
{%- for column in key.columns() -%}
{{ key.argument(column) }}{% if !loop.last %}, {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The condition for the rows of one counter, a line each. -#}
{% block equals -%}
{%- for column in key.columns() -%}
{{ alias }}{{ column.name.typed() }} = {{ key.argument(column) }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- True if every argument is valid. Unknown for NULL. -#}
{% block valid -%}
{%- for column in key.columns() -%}
{%- if column.kind.is_limited() %}{{ key.fits(column) }}{% else %}{{ column.parameter.typed() }} IS NOT NULL{% endif %}{% if !loop.last %}
  AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- For each argument that may equal a stored value although it does not fit: that it does not fit. -#}
{% block or_unfit -%}
{%- for column in key.columns() -%}
{%- if column.kind.is_text() %} OR {{ key.misfit(column) }}{% endif -%}
{%- endfor -%}
{%- endblock %}

{#- For each argument that may equal a stored value although it does not fit: that it fits. -#}
{% block and_fits -%}
{%- for column in key.columns() -%}
{%- if column.kind.is_text() %} AND NOT ({{ key.misfit(column) }}){% endif -%}
{%- endfor -%}
{%- endblock %}

{#- The parameters of a routine that identify a counter, a line each. -#}
{% block parameters -%}
{%- for column in key.columns() %}
  {{ mode }}{{ column.parameter.typed() }} {{ key.parameter_type(column) }}{% if !loop.last %},{% endif %}
{%- endfor -%}
{%- endblock %}

{#- The same of the routine that checks them. -#}
{% block checked_parameters -%}
{%- for column in key.columns() %}
  {{ mode }}{{ column.parameter.typed() }} {{ key.checked_type(column) }}{% if !loop.last %},{% endif %}
{%- endfor -%}
{%- endblock %}

{#- The parameters as they are, for the routine that checks them. -#}
{% block raw_arguments -%}
{%- for column in key.columns() -%}
{{ column.parameter.typed() }}{% if !loop.last %}, {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The columns of an array in JSON_TABLE(), a line each. -#}
{% block json_columns -%}
{%- for column in key.columns() %}
  {{ column.parameter.typed() }} {{ key.json_type(column) }} PATH '$[{{ loop.index0 }}]',
{%- endfor -%}
{%- endblock %}

{#- The same columns as JSON. -#}
{% block json_values -%}
{%- for column in key.columns() %}
  json_{{ loop.index0 }} JSON PATH '$[{{ loop.index0 }}]',
{%- endfor -%}
{%- endblock %}

{#- True if the values fit the columns. False or unknown otherwise. -#}
{% block json_fits_all -%}
{%- for column in key.columns() -%}
{% let json = "json_{}"|format(loop.index0) %}{{ key.json_fits(column, json) }}
   AND {% endfor -%}
{%- endblock %}

{#- The values with the names of the columns, a line each. -#}
{% block json_list -%}
{%- for column in key.columns() -%}
{{ key.json_value(column) }} AS {{ column.name.typed() }}{% if !loop.last %},
{% endif %}
{%- endfor -%}
{%- endblock %}

{#- The same parameters in the manual of the routine, a line each. -#}
{% block manual -%}
{%- for column in key.columns() %}  {{ column.parameter.typed() }} {{ column.kind.text() }}: key of the record{% if !loop.last %}
{% endif %}
{%- endfor -%}
{%- endblock %}
