{%- for object in c.routines_and_views() %}
{{ object }}
{% endfor -%}
