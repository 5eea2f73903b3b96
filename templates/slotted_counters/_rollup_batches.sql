-- {{ rollup.column() }}
BEGIN
  DECLARE v_first {{ table.key.variable_type(rollup.record) }};
  DECLARE v_last {{ table.key.variable_type(rollup.record) }};

  SELECT MIN(next.record)
    INTO v_first
    FROM (
      SELECT {{ rollup.record_value() }} AS record
        FROM {{ table.name }}
{%- if !rollup.model.same.is_empty() %}
       WHERE {{ rollup.same()|indent(6) }}
{%- endif %}
       ORDER BY {{ rollup.record_value() }}
       LIMIT 1
    ) AS next;

  WHILE v_first IS NOT NULL DO
    SELECT MAX(batch.record)
      INTO v_last
      FROM (
        SELECT DISTINCT {{ rollup.record_value() }} AS record
          FROM {{ table.name }}
         WHERE {{ rollup.same_and()|indent(8) }}{{ rollup.record_value() }} >= v_first
         ORDER BY {{ rollup.record_value() }}
         LIMIT v_batch
      ) AS batch;
    -- A SELECT reads the totals and an UPDATE writes them, because an UPDATE that joins the sums would lock the slots.
    -- MariaDB limits the result of JSON_ARRAYAGG to group_concat_max_len.
    {{ table.set_statement("group_concat_max_len=4294967295")|before(4) }}SELECT MAX({{ rollup.not_imported()|indent(4) }}),
           JSON_ARRAYAGG(JSON_OBJECT(
             'record', {{ rollup.as_json("counted.record") }},
             'total', CAST(counted.total AS CHAR),
             'old', CAST(parent.{{ rollup.model.target.typed() }} AS CHAR),
             'written', CAST(written.total AS CHAR)))
      INTO v_not_imported,
           v_changes
      FROM (
        SELECT {{ rollup.record_value() }} AS record,
               SUM(`count`) AS total
          FROM {{ table.name }}
         WHERE {{ rollup.same_and()|indent(8) }}{{ rollup.record_value() }} BETWEEN v_first AND v_last
         GROUP BY {{ rollup.record_value() }}
      ) AS counted
     INNER JOIN {{ rollup.model.table }} AS parent
        ON parent.{{ rollup.model.id.typed() }} = counted.record
      LEFT JOIN {{ rollup.written }} AS written
        ON written.record = counted.record
     WHERE NOT parent.{{ rollup.model.target.typed() }} <=> counted.total;
    IF v_not_imported THEN
      {{ r.signal_column(E::NotImported, rollup.column())|indent(6) }}
    END IF;

    IF v_changes IS NOT NULL THEN
      {{ table.over_snapshot()|before(6) }}INSERT INTO {{ rollup.written }} (record, total)
      SELECT {{ rollup.out_of_json("changed.record") }}, 0
        FROM {{ rollup.changes()|indent(8) }} AS changed
       WHERE changed.written IS NULL
      ON DUPLICATE KEY UPDATE total = {{ rollup.written }}.total;
      -- The condition on the value that was read keeps concurrent calls from overwriting a newer total. A total that has
      -- returned to an earlier value in between is written by the next call. LIMIT keeps the subquery apart from the
      -- UPDATE. The settings make the UPDATE find its rows by the index: a scan would wait for locked rows.
      {{ table.set_statement("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF, join_cache_level=0, max_seeks_for_key=1")|before(6) }}UPDATE
{%- if package.options.servers != Servers::Mariadb %} /*+ SET_VAR(max_seeks_for_key = 1) NO_BNL() */{% endif %} (
        SELECT {{ rollup.out_of_json("changed.record") }} AS record,
               changed.total AS total
          FROM {{ rollup.changes()|indent(10) }} AS changed
         STRAIGHT_JOIN {{ rollup.model.table }} AS unlocked
            ON unlocked.{{ rollup.model.id.typed() }} = {{ rollup.out_of_json("changed.record") }}
         WHERE unlocked.{{ rollup.model.target.typed() }} <=> changed.old
         LIMIT {{ RECORDS_MAX }}
           FOR UPDATE{{ package.options.servers.of("unlocked") }} SKIP LOCKED
      ) AS changed
       STRAIGHT_JOIN {{ rollup.model.table }} AS parent
          ON parent.{{ rollup.model.id.typed() }} = changed.record
       STRAIGHT_JOIN {{ rollup.written }} AS written
          ON written.record = changed.record
         SET parent.{{ rollup.model.target.typed() }} = changed.total,
             written.total = changed.total;
    END IF;

    SELECT MIN(next.record)
      INTO v_first
      FROM (
        SELECT {{ rollup.record_value() }} AS record
          FROM {{ table.name }}
         WHERE {{ rollup.same_and()|indent(8) }}{{ rollup.record_value() }} > v_last
         ORDER BY {{ rollup.record_value() }}
         LIMIT 1
      ) AS next;
  END WHILE;
END;
