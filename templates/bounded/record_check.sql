{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,{{ table.key.parameters("IN ") }}
)
  NO SQL
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Rejects a key that no record can have. p_routine is the name for the message.
{%- endfilter %}
BEGIN
  {{ r.check_key()|indent(2) }}
END
