{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Takes an amount from a {{ table.subject() }}. If the total is less than the amount, the call fails and changes nothing. A record
  without rows has 0. To put an amount back, call {{ r.sibling(R::Add).typed() }}. The change is part of the transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call takes from the slot of the connection. If this slot has less than the amount, other slots share what they have. The
  last counts are in slot {{ table.first_slot() }}, and calls wait for each other there.
  In a transaction, a call that fails locks all slots in share mode until the end.

Parameters
{{ table.key.manual() }}
  p_amount BIGINT: the amount, at least 1

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 2);
{%- endfilter %}
BEGIN
  DECLARE v_slot BIGINT DEFAULT {{ table.slot_of_call()|indent(2) }};
  DECLARE v_have BIGINT DEFAULT p_amount;
  DECLARE v_autocommit BOOLEAN DEFAULT FALSE;

  {{ table.read_own_slot(table.key.equals(""))|indent(2) }}
  {{ table.take_slot("p_amount", "v_slot")|indent(2) }}
     AND v_have >= p_amount
     AND p_amount > 0{{ table.key.and_fits() }};
  IF ROW_COUNT() = 0 THEN
    {{ r.check()|indent(4) }}
    CALL {{ r.sibling(R::Reject) }}({{ table.key.arguments() }}, p_amount, v_slot, v_autocommit);
  END IF;
END
