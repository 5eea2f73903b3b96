{%- import "macros.sql" as m -%}
{%- let of = o.column().expect("the package has a column") -%}
{%- let record = sql.key("{} = {p}", " AND ") -%}
{%- let sums = sql.on_mariadb(", v_sum") -%}
{%- macro update(o, of, record, indent) %}
{{ indent }}UPDATE {{ of.table }} AS parent SET parent.{{ of.column }} = COALESCE(parent.{{ of.column }}, 0) + v_sum
{%- for name in o.keep() %},
{{ indent }}  parent.{{ name }} = parent.{{ name }}
{%- endfor %}
{#- -#}
{{" "}}WHERE {{ record }};
{%- endmacro -%}
{%- macro add_to_row(o, of, record) %}
  IF {{ sql.on_mariadb("v_found AND ") }}v_sum <> 0 THEN
    BEGIN
      -- Errors that say nothing of the value end the move, through the handler above. Any other rejects the value.
      DECLARE EXIT HANDLER FOR
        1205, 1206, 1213, 1114, 1290, {% if o.mariadb() %}1665, 1020, 1317, 1969, -- locks, disk, read-only, KILL
        {%- else %}1836, -- locks, disk, read-only{% endif %}
        1044, 1142, 1143, 1370, 1449, 1054, 1146, 1305 -- privileges, definer, missing column, table, routine
        RESIGNAL;
      -- NOT FOUND, because a trigger can signal it. With max_error_count = 0, there is no MESSAGE_TEXT.
      DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND
        BEGIN
          GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
          SET {{ sql.on_mariadb("v_found = 0, ") }}p_rejected = COALESCE(p_rejected, 'no message');
          ROLLBACK TO SAVEPOINT slotted_move;
        END;
{%- call update(o, of, record, "      ") %}{% endcall %}
{%- if o.mariadb() %}
      -- KILL QUERY can end an UPDATE without error or change (MariaDB 11.8): repeats it and its triggers. Below, too.
      IF ROW_COUNT() = 0 THEN
{%- call update(o, of, record, "        ") %}{% endcall %}
      END IF;
{%- endif %}
    END;
  END IF;
{%- endmacro -%}
{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_idle BOOLEAN,
  OUT p_slots INT,
  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. In an open transaction, adds the counts of a record to its row, without those that others hold.
  p_idle: deletes the slots that are 0. p_slots: how many slots with counts are free, or 0 if there is no row or others
  hold it. p_rejected: the error of the row, if it rejects the sum of these slots; then nothing has changed.'
moving: BEGIN
  DECLARE v_slot, v_count, v_found BIGINT DEFAULT 0;
  DECLARE v_sum DECIMAL(65, 0) DEFAULT 0;
  DECLARE v_slots CURSOR FOR
    SELECT slot, `count`{{ sql.on_mariadb(", SUM(`count`) OVER ()") }}
      FROM {{ o.table }} WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  -- The end of the cursor, whose rows OPEN has copied. If KILL QUERY ends a SELECT this way, nothing is moved.
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0;
{%- if !o.mariadb() %}
  -- No handler runs after KILL: the transaction stays open, with half a move, until ROLLBACK or the end of the session.
{%- endif %}
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      BEGIN
        -- After a deadlock, there is no savepoint. RESIGNAL raises the error that has led here.
        DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
        ROLLBACK TO SAVEPOINT slotted_move;
      END;
      RESIGNAL;
    END;

  SAVEPOINT slotted_move;
  SELECT COUNT(*) INTO v_found FROM {{ of.table }} WHERE {{ record }} FOR UPDATE SKIP LOCKED;
  IF NOT v_found THEN SET p_slots = 0; LEAVE moving; END IF;
  -- Locks the slots that are free. Most records have one, and a cursor would cost as much as an UPDATE.
  SELECT COUNT(*), COUNT(NULLIF(`count`, 0)), MAX(slot), MAX(`count`){{ sql.on_mariadb(", SUM(`count`)") }}
    INTO v_found, p_slots, v_slot, v_count{{ sums }} FROM {{ o.table }}
   WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  IF v_found > 1 THEN OPEN v_slots; FETCH v_slots INTO v_slot, v_count{{ sums }}; END IF;
{%- if o.mariadb() %}
  -- First the row: no handler runs for 1205 at an index, 1451 and 1452 of its UPDATE, so no slot may have changed yet.
{%- call add_to_row(o, of, record) %}{% endcall %}
{%- endif %}
  WHILE v_found DO
    IF v_count = 0 THEN
      DELETE FROM {{ o.table }} WHERE {{ record }} AND slot = v_slot AND `count` = 0;
    ELSE
      UPDATE {{ o.table }} SET `count` = `count` - v_count WHERE {{ record }} AND slot = v_slot;
{%- if o.mariadb() %}
      IF ROW_COUNT() = 0 THEN
        UPDATE {{ o.table }} SET `count` = `count` - v_count WHERE {{ record }} AND slot = v_slot;
      END IF;
{%- else %}
      SET v_sum = v_sum + v_count;
{%- endif %}
    END IF;
    IF v_found = 1 THEN SET v_found = 0; ELSE FETCH v_slots INTO v_slot, v_count{{ sums }}; END IF;
  END WHILE;
{%- if !o.mariadb() %}
  -- Last the row: the handlers see each of its errors, and take back the slots.
{%- call add_to_row(o, of, record) %}{% endcall %}
{%- endif %}
END
