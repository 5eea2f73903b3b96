{%- if package.options.random() && check -%}
{{ r.check_key() }}

{% endif %}
{#- -#}
-- The primary key is the only unique key, so that the upsert locks one record and no gap.
{% if package.options.random() -%}
SET v_slot = {{ table.any_slot("RAND()", table.slots()) }};
{{ table.upsert(amount, "v_slot") }}
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
  BEGIN
    {{ table.slot_of_node()|indent(4) }}
    {{ table.upsert(amount, "v_slot")|indent(4) }}
  END;
END IF;
{%- endif %}
