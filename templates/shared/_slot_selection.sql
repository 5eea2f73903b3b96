{% if package.options.random() -%}
Each call selects a random slot.
{%- else -%}
A connection selects the same slot of a {{ table.subject() }}{% if !table.keyed() %} until a resize{% endif %}: transactions that increment one {{ table.subject() }} cannot deadlock with each other.
{%- if table.keyed() %} There is one exception: if the transaction that has inserted a slot is rolled back while two others wait for
  this slot, the server rolls back one of them (1213).
{%- endif %}
{%- endif %}
