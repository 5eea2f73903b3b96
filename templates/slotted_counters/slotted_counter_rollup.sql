{{ r.create_as("PROCEDURE") }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ rollup.package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Writes the totals of {{ table.name.typed() }}{{ rollup.same_text() }} to {{ rollup.model.table.typed() }}.{{ rollup.model.target.typed() }}. The row is the one
  whose {{ rollup.model.id.typed() }} equals {{ rollup.record.name.typed() }}. Rows that already have the total are not written.
  The procedure reads the records in batches and writes each batch with one UPDATE. It locks no row of
  {{ table.name.typed() }}, and only the rows of {{ rollup.model.table.typed() }} that it changes. Under autocommit, each batch commits by
  itself: if the call is interrupted, the next call writes the remaining rows. Call the procedure outside transactions.
  A row that another connection has changed since its batch was read is written by the next call.
  The row of a record without slots is not changed. To set the column to 0, reset the record.
  {{ rollup.model.table.typed() }}.{{ rollup.model.id.typed() }} needs an index.

Parameters
  p_records INT: the number of records of a batch, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE v_batch INT DEFAULT COALESCE(p_records, {{ BATCH }});
  DECLARE v_first {{ table.key.column_type(rollup.record) }};
  DECLARE v_last {{ table.key.column_type(rollup.record) }};
  DECLARE v_changes LONGTEXT CHARACTER SET utf8mb4;

  IF v_batch NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ r.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;
  SELECT MIN(next.record)
    INTO v_first
    FROM (
      SELECT {{ rollup.record.name.typed() }} AS record
        FROM {{ table.name }}
{%- if !rollup.model.same.is_empty() %}
       WHERE {{ rollup.same()|indent(6) }}
{%- endif %}
       ORDER BY {{ rollup.record.name.typed() }}
       LIMIT 1
    ) AS next;

  WHILE v_first IS NOT NULL DO
    SELECT MAX(batch.record)
      INTO v_last
      FROM (
        SELECT DISTINCT {{ rollup.record.name.typed() }} AS record
          FROM {{ table.name }}
         WHERE {{ rollup.same_and()|indent(8) }}{{ rollup.record.name.typed() }} >= v_first
         ORDER BY {{ rollup.record.name.typed() }}
         LIMIT v_batch
      ) AS batch;
    -- A SELECT reads the totals and an UPDATE writes them, because an UPDATE that joins the sums would lock the slots.
    SELECT JSON_ARRAYAGG(JSON_OBJECT(
             'record', {{ rollup.as_json("counted.record") }},
             'total', CAST(counted.total AS CHAR),
             'old', CAST(parent.{{ rollup.model.target.typed() }} AS CHAR)))
      INTO v_changes
      FROM (
        SELECT {{ rollup.record.name.typed() }} AS record,
               SUM(`count`) AS total
          FROM {{ table.name }}
         WHERE {{ rollup.same_and()|indent(8) }}{{ rollup.record.name.typed() }} BETWEEN v_first AND v_last
         GROUP BY {{ rollup.record.name.typed() }}
      ) AS counted
     INNER JOIN {{ rollup.model.table }} AS parent
        ON parent.{{ rollup.model.id.typed() }} = counted.record
     WHERE NOT parent.{{ rollup.model.target.typed() }} <=> counted.total;
    -- The condition on the value that was read keeps concurrent calls from overwriting a newer total. A total that has
    -- returned to an earlier value in between is written by the next call.
    UPDATE JSON_TABLE(v_changes, '$[*]' COLUMNS (
             record {{ rollup.json_type() }} PATH '$.record',
             total DECIMAL(65, 0) PATH '$.total',
             old DECIMAL(65, 0) PATH '$.old')) AS changed
     STRAIGHT_JOIN {{ rollup.model.table }} AS parent
        ON parent.{{ rollup.model.id.typed() }} = {{ rollup.out_of_json("changed.record") }}
       SET parent.{{ rollup.model.target.typed() }} = changed.total
     WHERE parent.{{ rollup.model.target.typed() }} <=> changed.old;

    SELECT MIN(next.record)
      INTO v_first
      FROM (
        SELECT {{ rollup.record.name.typed() }} AS record
          FROM {{ table.name }}
         WHERE {{ rollup.same_and()|indent(8) }}{{ rollup.record.name.typed() }} > v_last
         ORDER BY {{ rollup.record.name.typed() }}
         LIMIT 1
      ) AS next;
  END WHILE;
END
