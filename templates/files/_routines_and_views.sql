{%- for object in script.routines_and_views() %}
{{ object.text }}
{% endfor -%}
