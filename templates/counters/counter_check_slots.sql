{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_slots BIGINT
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Rejects a number of slots that no counter can have on this server. p_routine is the name for the message.
{%- endfilter %}
BEGIN
{%- if package.options.per_counter() %}
  IF p_slots IS NULL OR p_slots NOT BETWEEN 1 AND {{ MAX_SLOTS }} THEN
    {{ r.signal(E::SlotsOutOfRange)|indent(4) }}
  END IF;
{%- else %}
  IF p_slots <> {{ package.options.setup_slots() }} THEN
    {{ r.signal(E::SlotsFixed)|indent(4) }}
  END IF;
{%- endif %}
  IF {{ table.slots_wanted() }} < {{ table.nodes() }} THEN
    {{ r.signal(E::SlotsOfNodes)|indent(4) }}
  END IF;
END
