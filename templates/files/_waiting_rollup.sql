START TRANSACTION;
{%- if let Some(rollup) = table.rollup() %}
{{ rollup.lock_rows() }}
{%- endif %}
{{ call }};
COMMIT AND NO CHAIN NO RELEASE;
