{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Rejects a name that no counter can have. p_routine is the name for the message.
{%- endfilter %}
BEGIN
  IF p_counter_name IS NULL OR RTRIM(p_counter_name) = '' THEN
    {{ r.signal(E::NameEmpty)|indent(4) }}
  END IF;
  IF CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
    {{ r.signal(E::NameTooLong)|indent(4) }}
  END IF;
END
