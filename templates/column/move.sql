{%- import "macros.sql" as m -%}
{%- let of = o.column().expect("the package has a column") -%}
{%- let record = sql.key("{} = {p}", " AND ") -%}
{%- macro update(o, of, record, indent) %}
{{ indent }}UPDATE {{ of.table }} AS parent SET parent.{{ of.column }} = COALESCE(parent.{{ of.column }}, 0) + v_sum
{%- for name in o.keep() %},
{{ indent }}  parent.{{ name }} = parent.{{ name }}
{%- endfor %}
{{ indent }}  WHERE {{ record }};
{%- endmacro -%}
{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_idle BOOLEAN,
  IN p_final BOOLEAN,
  OUT p_slots INT,
  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Adds the counts of a record to its row, without those that others hold. p_idle: deletes idle slots.
  p_slots: their number; NULL without a row or if others hold it; -1 if it rejects a part, and others hold the rest.
  p_rejected: the error of the row, if all slots are known. p_final: the caller has locked them.'
moving: BEGIN
  DECLARE v_slot, v_count BIGINT;
  DECLARE v_sum, v_all DECIMAL(65, 0) DEFAULT 0;
  DECLARE v_end BOOLEAN DEFAULT FALSE;
  DECLARE v_slots CURSOR FOR
    SELECT slot, `count`
      FROM {{ o.table }}
     WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }}
       FOR UPDATE SKIP LOCKED;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      BEGIN
        -- After a deadlock, there is no savepoint.
        DECLARE CONTINUE HANDLER FOR 1181, 1305 BEGIN END;
        ROLLBACK TO SAVEPOINT slotted_move;
      END;
      RESIGNAL;
    END;

  SAVEPOINT slotted_move;
  SELECT IF(COUNT(*), 0, NULL) INTO p_slots FROM {{ of.table }} WHERE {{ record }} FOR UPDATE SKIP LOCKED;
  IF p_slots IS NULL THEN LEAVE moving; END IF;
  OPEN v_slots;
  FETCH v_slots INTO v_slot, v_count;
  WHILE NOT v_end DO
    IF v_count = 0 THEN
      DELETE FROM {{ o.table }} WHERE {{ record }} AND slot = v_slot;
    ELSE
      UPDATE {{ o.table }} SET `count` = 0 WHERE {{ record }} AND slot = v_slot;
      SET v_sum = v_sum + v_count{% if o.mariadb() %} * (ROW_COUNT() > 0){% endif %}, p_slots = p_slots + 1;
    END IF;
    FETCH v_slots INTO v_slot, v_count;
  END WHILE;
  IF v_sum <> 0 THEN
    BEGIN
      -- Not rejections by the row: locks, KILL, read_only, a full table, a missing privilege, definer or object.
      DECLARE EXIT HANDLER FOR 1205, 1213, 1317, {% if o.mariadb() %}1020, 1969{% else %}1836, 3024{% endif %},
        1290, 1114, 1044, 1142, 1143, 1370, 1449, 1054, 1146, 1305 RESIGNAL;
      -- A trigger can signal NOT FOUND. With max_error_count = 0, MESSAGE_TEXT stays NULL.
      DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND
        BEGIN
          GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
          ROLLBACK TO SAVEPOINT slotted_move;
          -- With the slots that others hold, the row may accept the total.
          SELECT SUM(`count`) INTO v_all FROM {{ o.table }} WHERE {{ record }}{{ m::own(o, "slot") }};
          SET p_slots = IF(p_final OR v_all = v_sum, 0, -1),
              p_rejected = IF(p_slots = 0, COALESCE(p_rejected, 'no message'), NULL);
        END;
{%- call update(o, of, record, "      ") %}{% endcall %}
{%- if o.mariadb() %}
      -- KILL QUERY can end an UPDATE without an error and without a change (MariaDB 11.8).
      IF ROW_COUNT() = 0 THEN
{%- call update(o, of, record, "        ") %}{% endcall %}
      END IF;
{%- endif %}
    END;
  END IF;
END
