{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_value BIGINT,
  IN p_restart BOOLEAN
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of a counter in one statement: slot 1 gets the value, all other slots get 0.
  A concurrent increment takes effect either before the reset, which overwrites it, or after the reset.
  On a node of a cluster and outside a transaction, a statement resets each slot, slot 1 at last, and is repeated if it conflicts
  with another node. Until the call ends, a read can return less than the old and the new total.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_value BIGINT: the new total; NULL means 0
  p_restart BOOLEAN: TRUE sets start_date to NOW() in the time zone of the session, FALSE or NULL keeps start_date

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads', 0, TRUE);
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;
{%- include "shared/_step_variables.sql" %}

  {{ r.check_name()|indent(2) }}
  IF p_value < 0 THEN
    -- Row 0 marks that no slot is negative. Between the first and the last statement, another session can insert it.
    {{ table.delete_mark()|indent(4) }}
  END IF;
  {{ table.find_steps()|indent(2) }}
  IF v_steps THEN
    {{ table.last_slot("v_slot", "")|indent(4) }}
    IF v_slot IS NULL THEN
      {{ r.signal(E::UnknownCounter)|indent(6) }}
    END IF;
    {{ table.in_steps(table.reset_slot())|indent(4) }}
  ELSE
    -- The subquery locks the slots from the highest to slot 1, as increments do. A shrink moves a slot down: at READ
    -- COMMITTED, a statement that reads upwards could miss it.
    {{ table.reset("p_value", "p_restart")|indent(4) }}
    IF ROW_COUNT() = 0 THEN
      {{ r.if_interrupted("counter_name = p_counter_name
   AND counter <> IF(counter_id = 1, COALESCE(p_value, 0), 0)")|before(6) }}-- No row was changed: the counter is unknown, or it already has these values. A locking read sees the same rows
      -- as the UPDATE, unlike a read of the snapshot.
      {{ table.over_snapshot()|before(6) }}SELECT COUNT(*)
        INTO v_rows
        FROM {{ table.name }}
       WHERE counter_name = p_counter_name
         AND counter_id = 1
        LOCK IN SHARE MODE;
      IF v_rows = 0 THEN
        {{ r.signal(E::UnknownCounter)|indent(8) }}
      END IF;
    END IF;
  END IF;
  IF p_value < 0 THEN
    {{ table.delete_mark()|indent(4) }}
  END IF;
END
