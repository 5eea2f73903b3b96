{{ r.create_as("PROCEDURE") }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds the pending counts of {{ table.name.typed() }} to
{%- for rollup in r.rollups() %}
  - {{ rollup.column() }}{{ rollup.same_text() }}, in the row with the same key
{%- endfor %}
  and subtracts them from the slots, both in one statement: no total changes. Its cost is what is pending. It does not wait for
  a row that another transaction has locked, and does not move the counts of a record without a row: they stay in the slots.
  Slots that have stayed 0 since the last call are deleted. Outside a transaction, each batch commits by itself.
{%- if table.on_nodes() %}
  On a cluster, each node moves the slots that it writes itself.
{%- endif %}
  If the table of the column rejects a total, this record stays pending, all others are moved, and the call ends with an error.

Parameters
  p_records INT: the number of records of a batch, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE v_batch INT DEFAULT COALESCE(p_records, {{ BATCH }});
  DECLARE v_rejected VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;

  IF v_batch NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ r.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;
{%- for rollup in r.rollups() %}

  {{ rollup.batches()|indent(2) }}
{%- endfor %}

  IF v_rejected IS NOT NULL THEN
    {{ r.signal(E::TotalRejected)|indent(4) }}
  END IF;
END
