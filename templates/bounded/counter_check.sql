{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  NO SQL
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Rejects a name that no counter can have. p_routine is the name for the message.
{%- endfilter %}
BEGIN
  {{ r.check_name()|indent(2) }}
END
