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
  {{ table.missing_counter("p_amounts")|indent(2) }}
  IF v_entry IS NOT NULL THEN
    {{ r.signal_named(E::UnknownCounter, "JSON_UNQUOTE(JSON_EXTRACT(p_amounts, CONCAT('$[', v_entry - 1, '][0]')))")|indent(4) }}
  END IF;
END
