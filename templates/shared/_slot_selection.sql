{% if package.options.random() -%}
Each call selects a random slot.
{%- else -%}
A connection always selects the same slot, so that two transactions that increment the same {{ table.subject() }} twice do not
  deadlock.
{%- endif %}
