{%- for (routine, name) in package.absent() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
