CREATE PROCEDURE {{ c.name }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Writes the totals of {{ c.table().typed() }}{{ c.rollup_same_text(rollup) }} into {{ rollup.table.typed() }}.{{ rollup.target.typed() }}, where {{ rollup.id.typed() }} is the
  {{ record.name.typed() }}, and where they differ. Goes through the records in batches, each written by one UPDATE:
  it locks no row of the counters, and of {{ rollup.table.typed() }} only the rows that it changes. Stopped half-way, what is
  written stays, and the next call finds what is left. To be called by an EVENT, by cron or by hand, outside
  transactions. A row that somebody else has written since its batch was read is left to the next call.
  A record without a row in {{ c.table().typed() }} is left as it is: to bring a column back to 0, reset the record.
  There has to be an index on {{ rollup.table.typed() }}.{{ rollup.id.typed() }}.

Parameters
  p_records  how many records a batch has, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE v_batch INT DEFAULT COALESCE(p_records, {{ BATCH }});
  DECLARE v_first {{ c.column_type(record) }};
  DECLARE v_last {{ c.column_type(record) }};
  DECLARE v_changes LONGTEXT CHARACTER SET utf8mb4;

  IF v_batch NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ c.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;
  SELECT MIN(next.record)
    INTO v_first
    FROM (
      SELECT {{ record.name.typed() }} AS record
        FROM {{ c.table() }}
{%- if !rollup.same.is_empty() %}
       WHERE {{ c.rollup_same_alone(rollup)|indent(6) }}
{%- endif %}
       ORDER BY {{ record.name.typed() }}
       LIMIT 1
    ) AS next;

  WHILE v_first IS NOT NULL DO
    SELECT MAX(batch.record)
      INTO v_last
      FROM (
        SELECT DISTINCT {{ record.name.typed() }} AS record
          FROM {{ c.table() }}
         WHERE {{ c.rollup_same(rollup)|indent(8) }}{{ record.name.typed() }} >= v_first
         ORDER BY {{ record.name.typed() }}
         LIMIT v_batch
      ) AS batch;
    -- Read first and write then: an UPDATE that joins the sums would lock the counters while it reads them.
    SELECT JSON_ARRAYAGG(JSON_OBJECT(
             'record', {{ c.as_json(record, "counted.record") }},
             'total', CAST(counted.total AS CHAR),
             'old', CAST(parent.{{ rollup.target.typed() }} AS CHAR)))
      INTO v_changes
      FROM (
        SELECT {{ record.name.typed() }} AS record,
               SUM({{ c.count_column() }}) AS total
          FROM {{ c.table() }}
         WHERE {{ c.rollup_same(rollup)|indent(8) }}{{ record.name.typed() }} BETWEEN v_first AND v_last
         GROUP BY {{ record.name.typed() }}
      ) AS counted
     INNER JOIN {{ rollup.table }} AS parent
        ON parent.{{ rollup.id.typed() }} = counted.record
     WHERE NOT parent.{{ rollup.target.typed() }} <=> counted.total;
    -- Only over the value that was read, so that of two calls at once none puts an older total over a newer one. Should
    -- a count have gone down and up again in between, the next call puts it right.
    UPDATE JSON_TABLE(v_changes, '$[*]' COLUMNS (
             record {{ c.json_type(record) }} PATH '$.record',
             total DECIMAL(65, 0) PATH '$.total',
             old DECIMAL(65, 0) PATH '$.old')) AS changed
     STRAIGHT_JOIN {{ rollup.table }} AS parent
        ON parent.{{ rollup.id.typed() }} = {{ c.out_of_json(record, "changed.record") }}
       SET parent.{{ rollup.target.typed() }} = changed.total
     WHERE parent.{{ rollup.target.typed() }} <=> changed.old;

    SELECT MIN(next.record)
      INTO v_first
      FROM (
        SELECT {{ record.name.typed() }} AS record
          FROM {{ c.table() }}
         WHERE {{ c.rollup_same(rollup)|indent(8) }}{{ record.name.typed() }} > v_last
         ORDER BY {{ record.name.typed() }}
         LIMIT 1
      ) AS next;
  END WHILE;
END
