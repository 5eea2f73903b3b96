{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, start_date, counter)
SELECT counter_name, slot, NOW(), total
  FROM (
    SELECT locked.*,
           COUNT(*) OVER () AS found
      FROM (
        SELECT existing.counter_name AS counter_name,
               existing.counter_id AS slot,
               existing.counter + entries.amount AS total
          FROM (
            SELECT *
              FROM JSON_TABLE({{ source }}, '$[*]' COLUMNS (
                counter_name {{ table.varchar(NAME_MAX) }} PATH '$[0]',
                slot BIGINT PATH '$[1]',
                amount DECIMAL(65, 0) PATH '$[2]'
              )) AS listed
             WHERE amount <> 0
             ORDER BY counter_name
             LIMIT {{ ENTRIES_MAX }}
          ) AS entries
          STRAIGHT_JOIN {{ table.name }} AS existing
            ON existing.counter_name = entries.counter_name
           AND existing.counter_id = {{ slot|indent(11) }}
           FOR UPDATE{{ table.package.options.servers.of("existing") }}
      ) AS locked
  ) AS adding
 WHERE found = {{ counters }}
ON DUPLICATE KEY UPDATE counter = adding.total;
