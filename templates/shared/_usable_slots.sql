{%- if table.bounded() -%}
{{ slots }} - MOD({{ slots }}, {{ table.nodes() }})
{%- else -%}
IF({{ slots }} < {{ table.nodes() }},
   {{ slots }},
   {{ slots }} - MOD({{ slots }}, {{ table.nodes() }}))
{%- endif %}
