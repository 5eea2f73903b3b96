{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Takes an amount from a {{ table.subject() }}. If the total is less than the amount, the call fails and changes nothing. To put an amount
  back, call {{ r.sibling(R::Add).typed() }}. The change is part of the transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call takes from the slot of the connection. If this slot has less than the amount, other slots share what they have. The
  last counts are in slot {{ table.first_slot() }}, and calls wait for each other there.
  In a transaction, a call that fails locks all slots in share mode until the end.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_amount BIGINT: the amount, at least 1

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('seats', 2);
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT;
  DECLARE v_slot BIGINT;
  DECLARE v_have BIGINT DEFAULT p_amount;
  DECLARE v_autocommit BOOLEAN DEFAULT FALSE;

  {{ table.last_slot("v_slots", "")|indent(2) }}
  SET v_slot = {{ table.slot_of_call()|indent(2) }};
  {{ table.read_own_slot("counter_name = LEFT(p_counter_name, 100)")|indent(2) }}
  {{ table.update_slot("- p_amount", "v_slot", "counter >= p_amount\n   AND v_have >= p_amount\n   AND p_amount > 0")|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    CALL {{ r.sibling(R::Reject) }}(p_counter_name, p_amount, v_autocommit);
  END IF;
END
