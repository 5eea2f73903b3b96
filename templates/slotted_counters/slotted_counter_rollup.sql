CREATE PROCEDURE {{ r.name }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ rollup.package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Writes the totals of {{ table.name.typed() }}{{ rollup.same_text() }} into {{ rollup.model.table.typed() }}.{{ rollup.model.target.typed() }}, where {{ rollup.model.id.typed() }} is the
  {{ rollup.record.name.typed() }}, and where they differ. Goes through the records in batches, each written by one UPDATE:
  it locks no row of the counters, and of {{ rollup.model.table.typed() }} only the rows that it changes. Stopped half-way, what is
  written stays, and the next call finds what is left. To be called by an EVENT, by cron or by hand, outside
  transactions. A row that somebody else has written since its batch was read is left to the next call.
  A record without a row in {{ table.name.typed() }} is left as it is: to bring a column back to 0, reset the record.
  There has to be an index on {{ rollup.model.table.typed() }}.{{ rollup.model.id.typed() }}.

Parameters
  p_records  how many records a batch has, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}

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
    -- Read first and write then: an UPDATE that joins the sums would lock the counters while it reads them.
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
    -- Only over the value that was read, so that of two calls at once none puts an older total over a newer one. Should
    -- a count have gone down and up again in between, the next call puts it right.
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
