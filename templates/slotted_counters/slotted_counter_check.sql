{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,{{ table.key.checked_parameters("IN ") }}
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Rejects a key that no record can have. p_routine is the name for the message.
{%- endfilter %}
BEGIN
{%- for column in table.key.columns() %}
  IF {{ column.parameter.typed() }} IS NULL THEN
    {{ r.signal_column(E::KeyNull, column.name.name())|indent(4) }}
  END IF;
{%- if column.kind.is_limited() %}
  IF {{ table.key.misfit(column) }} THEN
    {{ r.signal_column(E::KeyMisfit, column.name.name())|indent(4) }}
  END IF;
{%- endif %}
{%- endfor %}
END
