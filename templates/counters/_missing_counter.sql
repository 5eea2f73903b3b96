{{ table.over_snapshot()|before(0) }}SELECT MIN(entries.entry)
  INTO v_entry
  FROM {{ table.entries(source, "")|indent(2) }}
  LEFT JOIN {{ table.name }} AS existing
    ON existing.counter_name = entries.p_counter_name
   AND existing.counter_id = 1
 WHERE existing.counter_id IS NULL
   FOR UPDATE{{ table.package.options.servers.of("existing") }};
