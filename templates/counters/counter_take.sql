{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Takes an amount from a counter that must not fall below 0: stock, seats, credits, quotas. If the total is less than the
  amount, the call fails and changes nothing. To put an amount back, call {{ r.sibling(R::Add).typed() }}.
  The change is part of the transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call takes from the slot of the connection. If this slot has less than the amount, the call also takes from other
  slots and spreads what is left over them. It prefers slots that no other transaction has locked. The last counts are in
  slot 1, and calls wait for each other there.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_amount BIGINT: the amount, at least 1

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('seats', 2);
{%- endfilter %}
BEGIN
{%- if package.options.per_counter() %}
  DECLARE v_slots BIGINT;
{%- endif %}
  DECLARE v_slot BIGINT;
  DECLARE v_first BIGINT;
  DECLARE v_least BIGINT DEFAULT 0;
  DECLARE v_total DECIMAL(65, 0);

  IF p_amount IS NULL OR p_amount < 1 THEN
    {{ r.check_name()|indent(4) }}
    {{ r.signal(E::AmountNotPositive)|indent(4) }}
  END IF;
  -- Row 0 marks that no slot is negative. Then the slots that have the amount suffice, and the others need not be read.
  -- Reads both ends of the index. Without LEFT(), MariaDB reads every slot: the parameter is longer than the column.
{%- if package.options.per_counter() %}
  SELECT MAX(counter_id), MIN(counter_id)
    INTO v_slots, v_first
{%- else %}
  SELECT MIN(counter_id)
    INTO v_first
{%- endif %}
    FROM {{ table.name }}
   WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }});
  IF v_first <> 0 THEN
    SELECT MIN(counter)
      INTO v_least
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(2) }};
  END IF;
  SET v_slot = {{ table.slot_of_call()|indent(2) }};
  IF v_least >= 0 THEN
    {{ table.update_slot("- p_amount", "v_slot", "counter >= p_amount")|indent(4) }}
  END IF;
  IF v_least < 0 OR ROW_COUNT() = 0 THEN
    BEGIN
      DECLARE v_taken BOOLEAN DEFAULT FALSE;
      DECLARE v_tries INT DEFAULT 0;
      DECLARE v_pool DECIMAL(65, 0);
      DECLARE v_other BIGINT;
      DECLARE v_filled LONGTEXT CHARACTER SET utf8mb4;

      -- What other transactions have taken and not committed is in this total: if it is too small, the amount is not there.
      {{ r.check_enough("")|indent(6) }}
      IF v_first IS NULL OR v_first <> 0 THEN
        -- All slots, and row 0, which the statement inserts. Waits for the transactions that have locked one.
        {{ table.take_from_all()|indent(8) }}
        IF ROW_COUNT() = 0 THEN
          {{ r.check_enough(table.all_slots().as_str())|indent(10) }}
          {{ r.signal(E::NotEnough)|indent(10) }}
        END IF;
      ELSE
        IF v_total >= {{ FEW }} * {{ table.slots() }} THEN
          -- Half of what another slot has: of the next one with half of the average that no transaction has locked.
          SET v_other = v_slot;
          WHILE NOT v_taken AND v_tries < 3 DO
            SELECT (
                     SELECT counter_id
                       FROM {{ table.name }}
                      WHERE {{ table.key.equals("")|indent(19) }}
                        AND counter_id > 0
                        AND counter_id NOT IN (v_slot, v_other)
                        AND counter >= v_total DIV (2 * {{ table.slots() }})
                      ORDER BY IF(counter_id > v_other, 0, 1), counter_id
                      LIMIT 1
                   )
              INTO v_other;
            {{ table.take_from(table.two_unlocked_slots().as_str())|indent(12) }}
            SET v_taken = ROW_COUNT() > 0,
                v_tries = v_tries + 1;
          END WHILE;
        ELSEIF v_pool >= p_amount THEN
          -- The last ones are in slot 1.
          {{ table.update_slot("- p_amount", "1", "counter >= p_amount")|indent(10) }}
          SET v_taken = ROW_COUNT() > 0;
        END IF;
        IF NOT v_taken THEN
          -- The slots that no transaction has locked. A transaction that waits for slot 1 has locked no slot that the one
          -- with the lock on slot 1 waits for.
          {{ table.take_from(table.unlocked_slots().as_str())|indent(10) }}
          SET v_taken = ROW_COUNT() > 0,
              v_tries = 0;
        END IF;
        WHILE NOT v_taken DO
          -- The slots that are not 0. Waits for the transactions that have locked one.
          {{ table.read_filled()|indent(10) }}
          {{ table.take_from(table.filled_slots().as_str())|indent(10) }}
          SET v_taken = ROW_COUNT() > 0,
              v_tries = v_tries + 1;
          IF NOT v_taken AND v_tries < 3 THEN
            {{ r.check_enough("")|indent(12) }}
          ELSEIF NOT v_taken THEN
            -- In the snapshot of the transaction, the slots have more than now.
            {{ r.check_enough(table.filled_slots().as_str())|indent(12) }}
            {{ r.signal(E::NotEnough)|indent(12) }}
          END IF;
        END WHILE;
      END IF;
    END;
  END IF;
END
