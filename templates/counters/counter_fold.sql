{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_into BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Moves the counts of the retired slots, which have negative numbers, to slot p_into, and deletes these slots.
{%- endfilter %}
BEGIN
  DECLARE v_retired BIGINT;

  {{ table.over_snapshot()|before(2) }}SELECT COUNT(*)
    INTO v_retired
    FROM {{ table.name }}
   WHERE {{ table.key.equals("") }}
     AND counter_id < 1;
  IF v_retired > 0 THEN
    {{ table.fold("p_into", "v_retired")|indent(4) }}
    {{ table.delete_retired("v_retired")|indent(4) }}
  END IF;
END
