{%- for (routine, name) in package.absent() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{%- if let Some(name) = package.event() %}
DROP EVENT IF EXISTS {{ name }};
{%- endif %}
