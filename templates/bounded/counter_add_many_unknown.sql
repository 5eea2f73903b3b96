{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  READS SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Called after an add_many that has changed no row: says which counter does not exist.
{%- endfilter %}
BEGIN
  DECLARE v_entry BIGINT;

  -- A locking read sees what the statement has seen. A read of the snapshot can see less or more.
  {{ table.missing_counter("p_amounts")|indent(2) }}
  -- All counters are there: on MariaDB 11.8, KILL QUERY can end a statement without an error.
  IF v_entry IS NULL THEN
    CALL {{ r.sibling(R::Fail) }}(1317, NULL);
  END IF;
  {{ r.signal_named(E::UnknownCounter, "JSON_UNQUOTE(JSON_EXTRACT(p_amounts, CONCAT('$[', v_entry - 1, '][0]')))")|indent(2) }}
END
