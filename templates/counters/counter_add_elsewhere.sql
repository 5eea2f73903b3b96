{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT,
  IN p_slots BIGINT
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. An addition that has not found the slot of its connection among p_slots slots: a resize has removed the slot, or an
  argument is not valid. Tries lower slots, slot 1 last, and then fails with the reason.
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT DEFAULT p_slots;
  DECLARE v_slot BIGINT;
  DECLARE v_rows, v_tries BIGINT DEFAULT 0;

  {{ r.check()|indent(2) }}
  IF p_amount IS NULL THEN
    {{ r.signal(E::AmountNull)|indent(4) }}
  END IF;
  IF p_amount = 0 THEN
    {{ table.last_slot("v_slots", "")|indent(4) }}
    IF v_slots IS NULL THEN
      CALL {{ r.sibling(R::Unknown) }}(p_routine, p_counter_name);
    END IF;
  END IF;

  -- If all connections selected slot 1, they would wait for each other.
  WHILE p_amount <> 0 AND v_rows = 0 DO
    SET v_slot = COALESCE({{ table.slot_of_found()|indent(4) }}, 1);
    {{ table.update_slot("+ p_amount", "v_slot", "")|indent(4) }}
    SET v_rows = ROW_COUNT(),
        v_slots = GREATEST(v_slot - 1, 1);
    IF v_rows = 0 AND v_slot = 1 THEN
      CALL {{ r.sibling(R::Unknown) }}(p_routine, p_counter_name);
      -- Another session has created the counter since, or KILL QUERY has ended the UPDATE without an error (MariaDB 11.8).
      SET v_tries = v_tries + 1;
      IF v_tries > 3 THEN
        CALL {{ r.sibling(R::Fail) }}(1317, NULL);
      END IF;
    END IF;
  END WHILE;
END
