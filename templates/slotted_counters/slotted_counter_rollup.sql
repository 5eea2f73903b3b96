{{ r.create_as("PROCEDURE") }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Writes the totals of {{ table.name.typed() }} to
{%- for rollup in r.rollups() %}
  - {{ rollup.column() }}{{ rollup.same_text() }}, in the row whose {{ rollup.model.id.typed() }} equals {{ rollup.record.name.typed() }}
{%- endfor %}
  The procedure reads the records in batches and writes each batch with one UPDATE. It locks no row of
  {{ table.name.typed() }}, and only the rows of a parent table that it changes. Under autocommit, each batch commits by
  itself: if the call is interrupted, the next call writes the remaining rows. Call the procedure outside transactions.
  Rows that already have the total are not written. A row that another transaction has locked, or has changed since its
  batch was read, is written by the next call. The row of a record without slots is not changed. To set the column to 0,
  reset the record. The identifying column of a parent table needs a unique index.
  If a column has counts that were not imported, the call stops with an error and does not write the batch.

Parameters
  p_records INT: the number of records of a batch, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE v_batch INT DEFAULT COALESCE(p_records, {{ BATCH }});
  DECLARE v_not_imported INT;
  DECLARE v_changes LONGTEXT CHARACTER SET utf8mb4;

  IF v_batch NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ r.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;
{%- for rollup in r.rollups() %}

  {{ rollup.batches(r)|indent(2) }}
{%- endfor %}
END
