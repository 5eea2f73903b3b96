{{ r.create_as("PROCEDURE") }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Moves the pending counts of {{ table.name.typed() }} into
{%- for rollup in r.rollups() %} {{ rollup.column() }}{{ rollup.same_text() }}{% if !loop.last %},{% endif %}
{%- endfor %}: adds them there and subtracts
  them from the slots in one statement. Skips rows that another transaction has locked, and records without a row. Deletes slots that have
  stayed 0. Outside a transaction, each batch commits by itself.{% if table.on_nodes() %} On a cluster, each node moves the slots that it writes.{% endif %}
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
