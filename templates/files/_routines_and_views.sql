{%- for object in script.routines_and_views() %}
{{ object }}
{% endfor -%}
