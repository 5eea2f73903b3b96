{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of a {{ table.subject() }}. A negative amount is taken: the call is that of {{ r.sibling(R::Take).typed() }}, with which error messages begin.
  The change is part of the transaction of the caller: COMMIT and ROLLBACK apply to it.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_amount BIGINT: the amount; 0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the count of the slot, or the amount with the other sign, exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('seats', 10);
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT;

  IF p_amount > 0 THEN
    {{ r.count("+ p_amount", "p_amount", "")|indent(4) }}
  ELSEIF p_amount < 0 THEN
    CALL {{ r.sibling(R::Take) }}(p_counter_name, -p_amount);
  ELSE
    CALL {{ r.sibling(R::AddElsewhere) }}({{ r.speaker_text() }}, p_counter_name, p_amount, 1);
  END IF;
END
