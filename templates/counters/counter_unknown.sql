{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Fails if the counter does not exist, and returns if it does. Locks slot 1.
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;

  {{ r.check()|indent(2) }}
  -- A locking read sees what the statement has seen. A read of the snapshot can see less or more.
  {{ table.over_snapshot()|before(2) }}SELECT COUNT(*)
    INTO v_rows
    FROM {{ table.name }}
   WHERE {{ table.key.equals("") }}
     AND counter_id = 1
     FOR UPDATE;
  IF v_rows = 0 THEN
    {{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;
END
