{{ table.over_checks()|before(0) }}UPDATE (
    SELECT counter_name,
           slot,
           amount,
           COUNT(*) OVER () AS slots
      FROM (
        SELECT existing.counter_name AS counter_name,
               existing.counter_id AS slot,
               entries.amount AS amount
          FROM (
            SELECT *
              FROM JSON_TABLE(
                {{ source }}, '$[*]' COLUMNS (
                  counter_name {{ table.varchar(NAME_MAX) }} PATH '$[0]',
                  slot BIGINT PATH '$[1]',
                  amount DECIMAL(65, 0) PATH '$[2]'
                )
              ) AS entries
             ORDER BY counter_name
             LIMIT {{ ENTRIES_MAX }}
          ) AS entries
          STRAIGHT_JOIN {{ table.name }} AS existing
            ON existing.counter_name = entries.counter_name
           AND existing.counter_id = {{ slot|indent(11) }}
           FOR UPDATE{{ table.package.options.servers.of("existing") }}
      ) AS locked
  ) AS adding
  STRAIGHT_JOIN {{ table.name }} AS target
    ON target.counter_name = adding.counter_name
   AND target.counter_id = adding.slot
   SET target.counter = target.counter + adding.amount
 WHERE adding.slots = {{ counters }};
