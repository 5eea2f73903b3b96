START TRANSACTION;
{%- for rollup in table.rollups() %}
{{ rollup.lock_rows() }}
{%- endfor %}
CALL {{ rollup }}(NULL);
COMMIT AND NO CHAIN NO RELEASE;
