{#- The condition for the records of a roll-up. -#}
{% block alone -%}
{%- for (name, value) in rollup.model.same -%}
{{ name.typed() }} = {{ value.sql() }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The same before another condition. -#}
{% block and -%}
{%- for (name, value) in rollup.model.same -%}
{{ name.typed() }} = {{ value.sql() }}
   AND {% endfor -%}
{%- endblock %}
