{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_slots BIGINT
)
  NO SQL
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Rejects a number of slots that no counter can have on this server. p_routine is the name for the message.
{%- endfilter %}
BEGIN
  IF p_slots IS NULL THEN
    {{ r.signal(E::SlotsOutOfRange)|indent(4) }}
  END IF;
  {{ r.check_slots("p_slots")|indent(2) }}
END
