{#- The servers use no index for a comparison of rows in parentheses. -#}
{%- let strict = operator.trim_end_matches('=') -%}
{%- for column in source.key -%}
  {%- let value = column.comparable() -%}
  {%- let given = column.placeholder() -%}
  {%- if loop.last -%}
    {{ value }} {{ operator }} {{ given }}
  {%- else -%}
    {{ value }} {{ strict }}= {{ given }} AND ({{ value }} {{ strict }} {{ given }} OR {{ value }} = {{ given }} AND {# -#}
  {%- endif -%}
{%- endfor -%}
{%- for column in source.key -%}
  {%- if !loop.first %}){% endif -%}
{%- endfor -%}
