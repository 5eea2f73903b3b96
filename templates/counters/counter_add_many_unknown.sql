{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Fails if a counter of an add_many does not exist, and says which.
{%- endfilter %}
BEGIN
  DECLARE v_entry BIGINT;

  -- A locking read sees what the statements of the package change. A read of the snapshot can see less or more.
  {{ table.over_snapshot()|before(2) }}SELECT MIN(entries.entry)
    INTO v_entry
    FROM {{ table.entries("p_amounts", "")|indent(4) }}
    LEFT JOIN {{ table.name }} AS existing
      ON existing.counter_name = entries.p_counter_name
     AND existing.counter_id = 1
   WHERE existing.counter_id IS NULL
     FOR UPDATE{{ table.package.options.servers.of("existing") }};
  IF v_entry IS NOT NULL THEN
    {{ r.signal_named(E::UnknownCounter, "JSON_UNQUOTE(JSON_EXTRACT(p_amounts, CONCAT('$[', v_entry - 1, '][0]')))")|indent(4) }}
  END IF;
END
