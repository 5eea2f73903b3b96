{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Takes an amount from a record whose total must not fall below 0: stock, seats, credits, quotas. If the total is less than
  the amount, the call fails and changes nothing. A record without rows has 0. To put an amount back, call {{ r.sibling(R::Add).typed() }}.
  The change is part of the transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call takes from the slot of the connection. If this slot has less than the amount, the call locks the slots of the
  record that no other transaction has locked, and spreads what they have left over them.

Parameters
{{ table.key.manual() }}
  p_amount BIGINT: the amount, at least 1

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 2);
{%- endfilter %}
BEGIN
  DECLARE v_slot BIGINT;
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_own DECIMAL(65, 0);
  DECLARE v_pool DECIMAL(65, 0);
  DECLARE v_least BIGINT;
  DECLARE v_taken BOOLEAN DEFAULT FALSE;
  DECLARE v_tries INT DEFAULT 0;
  DECLARE v_filled LONGTEXT CHARACTER SET utf8mb4;

  {{ r.check_key()|indent(2) }}
  IF p_amount IS NULL OR p_amount < 1 THEN
    {{ r.signal(E::AmountNotPositive)|indent(4) }}
  END IF;
  SET v_slot = {{ table.slot_of_call()|indent(2) }};
  WHILE NOT v_taken DO
    -- What other transactions have taken and not committed is in this total: if it is too small, the amount is not there.
    SELECT COALESCE(SUM(`count`), 0),
           SUM(IF(slot = v_slot, `count`, NULL)),
           SUM(IF(slot = 0, `count`, 0)),
           MIN(`count`)
      INTO v_total, v_own, v_pool, v_least
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }};
    IF v_total < p_amount THEN
      {{ r.signal(E::NotEnough)|indent(6) }}
    END IF;
    -- The last ones of a record are in slot 0. If a slot is negative, the others have more than the total.
    IF v_least >= 0 AND (v_own >= p_amount OR v_pool >= p_amount AND v_total < {{ FEW }} * {{ table.slots() }}) THEN
      {{ table.take_slot("p_amount", "IF(v_own >= p_amount, v_slot, 0)")|indent(6) }}
      SET v_taken = ROW_COUNT() > 0;
    ELSEIF v_own IS NULL THEN
      -- The slot of the connection gets its share. An upsert locks no gap.
      {{ table.upsert("0", "v_slot")|indent(6) }}
    END IF;
    IF NOT v_taken AND v_least >= 0 THEN
      -- The slots that no transaction has locked. A transaction that waits for slot 0 has locked no slot that the one with
      -- the lock on slot 0 waits for.
      {{ table.take_from(table.unlocked_slots().as_str())|indent(6) }}
      SET v_taken = ROW_COUNT() > 0;
    END IF;
    IF NOT v_taken THEN
      -- The slots that are not 0. Waits for the transactions that have locked one.
      {{ table.read_filled()|indent(6) }}
      {{ table.take_from(table.filled_slots().as_str())|indent(6) }}
      SET v_taken = ROW_COUNT() > 0,
          v_tries = v_tries + 1;
      IF NOT v_taken AND v_tries = 3 THEN
        -- In the snapshot of the transaction, the slots have more than now.
        {{ table.over_snapshot()|before(8) }}SELECT COALESCE(SUM(amount), 0)
          INTO v_total
          FROM {{ table.filled_slots()|indent(10) }};
        {{ r.signal(E::NotEnough)|indent(8) }}
      END IF;
    END IF;
  END WHILE;
END
