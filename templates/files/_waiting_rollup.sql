START TRANSACTION;
{%- for rollup in table.rollups() %}
{{ rollup.lock_rows() }}
{%- endfor %}
{{ call }};
COMMIT AND NO CHAIN NO RELEASE;
