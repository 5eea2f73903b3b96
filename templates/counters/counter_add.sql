{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of a counter. The change is part of the transaction of the caller: COMMIT and ROLLBACK apply
  to it.
  {% include "shared/_slot_selection.sql" %}

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_amount BIGINT: the amount; a negative amount subtracts, 0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the count of the slot exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('downloads', 10);
{%- endfilter %}
BEGIN
{%- include "counters/_count_variables.sql" %}
  DECLARE v_first BIGINT;
  DECLARE v_short BOOLEAN DEFAULT FALSE;

  IF p_amount IS NULL OR p_amount = 0 THEN
    {{ r.check_name()|indent(4) }}
    IF p_amount IS NULL THEN
      {{ r.signal(E::AmountNull)|indent(6) }}
    END IF;
    -- ROW_COUNT() is 0 for an UPDATE by 0 and for an unknown counter. A SELECT tells them apart.
    BEGIN
      DECLARE v_last BIGINT;
      {{ table.last_slot("v_last", "")|indent(6) }}
      IF v_last IS NULL THEN
        {{ r.signal(E::UnknownCounter)|indent(8) }}
      END IF;
    END;
  ELSE
    IF p_amount < 0 THEN
      -- Row 0 marks that no slot is negative: {{ r.sibling(R::Take).name() }} relies on it.
      SELECT MIN(counter_id)
        INTO v_first
        FROM {{ table.name }}
       WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }});
    END IF;
    IF v_first = 0 THEN
      BEGIN
        DECLARE CONTINUE HANDLER FOR {{ E::NotEnough.number() }}
          SET v_short = TRUE;
        CALL {{ r.sibling(R::Take).typed() }}(p_counter_name, -p_amount);
      END;
    END IF;
    IF v_first IS NULL OR v_first <> 0 OR v_short THEN
      -- The total becomes negative. Between the first and the last statement, another session can insert row 0.
      IF v_short THEN
        {{ table.delete_mark()|indent(8) }}
      END IF;
      {{ r.count_named("+ p_amount")|indent(6) }}
      IF v_short THEN
        {{ table.delete_mark()|indent(8) }}
      END IF;
    END IF;
  END IF;
END
