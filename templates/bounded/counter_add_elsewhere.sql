{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT,
  IN p_slots BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. An addition that has not found the slot of its connection: a resize has removed the slot, or the name or the
  amount is not valid. Tries lower slots, slot 1 at last, and then says what is wrong.
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT DEFAULT p_slots;
  DECLARE v_slot BIGINT;
  DECLARE v_rows BIGINT;

  {{ r.check_name()|indent(2) }}
  IF p_amount IS NULL THEN
    {{ r.signal(E::AmountNull)|indent(4) }}
  END IF;

  -- If all connections selected slot 1, they would wait for each other.
  REPEAT
    SET v_slot = {{ table.slot_of_found()|indent(4) }};
    {{ table.update_slot("+ p_amount", "v_slot", "")|indent(4) }}
    SET v_rows = ROW_COUNT(),
        v_slots = v_slot - 1;
  UNTIL v_rows > 0 OR v_slot = 1 END REPEAT;

  IF v_rows = 0 THEN
    CALL {{ r.sibling(R::Unknown) }}(p_routine, p_counter_name);
    -- Slot 1 is there and was not changed: on MariaDB 11.8, KILL QUERY can end an UPDATE without an error.
    IF p_amount <> 0 THEN
      CALL {{ r.sibling(R::Fail) }}(1317, NULL);
    END IF;
  END IF;
END
