{% if package.options.random() -%}
Each call selects a random slot.
{%- else -%}
A connection always selects the same slot of a {{ table.subject() }}. Transactions that increment it several times therefore cannot
  deadlock.
{%- endif %}
