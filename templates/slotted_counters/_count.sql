{%- let one_way = package.options.random() || package.options.nodes.is_some() -%}
{%- if one_way && check -%}
{{ r.check_key() }}

{% endif %}
{#- -#}
-- The primary key is the only unique key, so that the upsert locks one record and no gap.
{% if package.options.random() -%}
SET v_slot = {{ table.any_slot("RAND()", table.slots()) }};
{{ table.upsert(amount, "v_slot") }}
{%- else if one_way -%}
{{ table.upsert_on_node(amount) }}
{%- else -%}
{% include "shared/_if_single_server.sql" %}
{%- if check %}
  AND {{ table.key.valid() }}
{%- endif %} THEN
  {{ table.upsert(amount, table.own_slot())|indent(2) }}
ELSE
{%- if check %}
  {{ r.check_key()|indent(2) }}
{%- endif %}
  {{ table.upsert_on_node(amount)|indent(2) }}
END IF;
{%- endif %}
