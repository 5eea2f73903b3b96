(
  SELECT existing.{{ table.slot() }} AS slot,
         existing.{{ table.count() }} AS amount
    FROM (
      SELECT slot
        FROM JSON_TABLE(v_filled, '$[*]' COLUMNS (slot INT PATH '$')) AS filled
       ORDER BY slot DESC
       LIMIT 20000
    ) AS filled
    STRAIGHT_JOIN {{ table.name }} AS existing
      ON {{ table.key.equals("existing.")|indent(3) }}
     AND existing.{{ table.slot() }} = filled.slot
   LIMIT 20000
     FOR UPDATE{{ table.package.options.servers.of("existing") }}
) AS locked
