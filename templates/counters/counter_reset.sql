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
  On a node of a cluster and outside a transaction, a statement resets each slot, slot 1 last, and is repeated if it conflicts
  with another node. Until the call ends, a read can return less than the old and the new total.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_value BIGINT: the new total; NULL means 0
  p_restart BOOLEAN: TRUE sets start_date to NOW() in the time zone of the session, FALSE or NULL keeps start_date

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('{{ r.counter() }}', 0, TRUE);
{%- endfilter %}
BEGIN
  DECLARE v_slots, v_rows, v_wrong BIGINT;
  DECLARE v_steps BOOLEAN;
  -- A cursor: MariaDB counts the row of a SELECT .. INTO as affected, and SET v = (SELECT ..) locks what it reads.
  DECLARE counted CURSOR FOR
   SELECT COUNT(*)
     FROM {{ table.name }}
    WHERE {{ table.key.equals("") }};

  {{ r.check()|indent(2) }}
  OPEN counted;
  FETCH counted INTO v_slots;
  CLOSE counted;
  CALL {{ r.sibling(R::InSteps) }}(v_steps);
  IF v_steps THEN
    CALL {{ r.sibling(R::Steps) }}({{ r.speaker_text() }}, p_counter_name, p_value, p_restart);
    SET v_wrong = 0;
  END IF;
  WHILE COALESCE(v_rows, 0) = 0 AND COALESCE(v_wrong, 1) <> 0 DO
    -- The subquery locks slot 1, then the others starting with the highest, as increments do, and counts them. If there are other slots than
    -- before, nothing is changed. LIMIT ends the range at the last slot: the next row belongs to another counter.
    {{ table.over_snapshot()|before(4) }}UPDATE {{ table.name }}
       SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
           start_date = IF(p_restart, NOW(), start_date)
     WHERE {{ table.key.equals("") }}
       AND v_slots = (SELECT COUNT(*) FROM {{ table.all_slots()|indent(7) }})
     ORDER BY counter_name DESC, counter_id DESC
     LIMIT v_slots;
    SET v_rows = ROW_COUNT();
    IF v_rows = 0 THEN
      -- The counter is unknown, has other slots than in the snapshot, or has these values. A locking read tells.
      {{ table.over_snapshot()|before(6) }}SELECT COUNT(*),
             SUM(counter <> IF(counter_id = 1, COALESCE(p_value, 0), 0) OR p_restart IS TRUE AND start_date <> NOW())
        INTO v_slots, v_wrong
        FROM {{ table.name }}
       WHERE {{ table.key.equals("") }}
        LOCK IN SHARE MODE;
      IF v_slots = 0 THEN
        {{ r.signal(E::UnknownCounter)|indent(8) }}
      END IF;
    END IF;
  END WHILE;
END
