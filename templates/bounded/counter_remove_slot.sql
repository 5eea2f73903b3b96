{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_slot BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Moves the count of a slot to slot 1 and deletes the slot. The first statement also gives the slot the negative of
  its number, which no other routine looks for: nobody writes it before the second statement deletes it.
{%- endfilter %}
BEGIN
  -- What a call that was interrupted has left.
  {{ table.delete_folded_slot("p_slot")|indent(2) }}
  {{ table.fold_slot("p_slot")|indent(2) }}
  {{ table.delete_folded_slot("p_slot")|indent(2) }}
END
