{%- import "macros.sql" as m -%}
{%- let of = o.column().expect("the package has a column") -%}
{%- let record = sql.key("{} = {p}", " AND ") -%}
{%- macro update(o, of, record, indent) %}
{{ indent }}UPDATE {{ of.table }} AS parent SET parent.{{ of.column }} = COALESCE(parent.{{ of.column }}, 0) + v_sum
{%- for name in o.keep() %},
{{ indent }}  parent.{{ name }} = parent.{{ name }}
{%- endfor %} WHERE {{ record }};
{%- endmacro -%}
{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_idle BOOLEAN,
  OUT p_slots INT,
  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. In an open transaction, adds the counts of a record to its row, except of slots that others hold.
  If others hold the row, it moves none. p_idle: deletes the slots that were 0 before. p_slots: the free slots with
  counts, as the sum of slot + 1, or NULL. p_rejected: the error of the row, if it rejects the counts: nothing changes.'
moving: BEGIN
  DECLARE v_slot, v_count, v_found, v_done BIGINT DEFAULT 0;
  DECLARE v_sum DECIMAL(65, 0) DEFAULT 0;
  DECLARE v_slots CURSOR FOR
    SELECT slot, `count`, COUNT(*) OVER (){{ sql.on_mariadb(", SUM(`count`) OVER ()") }}
      FROM {{ o.table }} WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  -- These say nothing of the value: takes the move back, raises it. KILL{{ sql.on_mariadb(" mostly") }} runs no handler.
  DECLARE EXIT HANDLER FOR 1205, 1206, 1213, 1114, 1290, 1792, {# -#}
    {% if o.mariadb() %}1020, 1665, -- locks, disk, read-only, snapshot, binlog
    1317, 1969, 1329, -- KILL, if it runs one; on 11.8, KILL QUERY can end a FETCH as NOT FOUND (1329)
    {%- else %}1836, 1665, -- locks, disk, read-only, binlog_format{% endif %}
    1044, 1142, 1143, 1370, 1449, 1054, 1146, 1305 -- privileges, definer, missing objects
    BEGIN
      BEGIN
        -- After a deadlock, there is no savepoint (1305). RESIGNAL raises the error that has led here.
        DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
        ROLLBACK TO SAVEPOINT slotted_move;
      END;
      RESIGNAL;
    END;
  -- With every other error, the row rejects the sum. NOT FOUND is a trigger's SIGNAL: no FETCH goes past the end.
  DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND
    BEGIN
      GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
      SET p_rejected = COALESCE(p_rejected, 'no message'); -- with max_error_count = 0
      ROLLBACK TO SAVEPOINT slotted_move;
    END;

  SAVEPOINT slotted_move;
  SELECT COUNT(*) INTO v_found FROM {{ of.table }} WHERE {{ record }} FOR UPDATE SKIP LOCKED;
  IF NOT v_found THEN LEAVE moving; END IF;
  -- Locks the free slots. One needs no cursor. A cursor reads and counts again, because more can be free now.
  SELECT COUNT(*), SUM((slot + 1) * (`count` <> 0)), MAX(slot), MAX(`count`){{ sql.on_mariadb(", SUM(`count`)") }}
    INTO v_found, p_slots, v_slot, v_count{{ sql.on_mariadb(", v_sum") }} FROM {{ o.table }}
   WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  IF v_found > 1 THEN OPEN v_slots; FETCH v_slots INTO v_slot, v_count, v_found{{ sql.on_mariadb(", v_sum") }}; END IF;
{%- if o.mariadb() %}
  -- The row first: if it waits too long at an index, the call ends without a handler (1205). No slot has changed yet.
  IF v_sum <> 0 THEN
{%- call update(o, of, record, "    ") %}{% endcall %}
    -- 0 rows: on 11.8, KILL QUERY can end an UPDATE without an error: again. If still 0, a trigger keeps the value.
    IF ROW_COUNT() = 0 THEN
{%- call update(o, of, record, "      ") %}{% endcall %}
    END IF;
  END IF;
{%- endif %}
  WHILE v_done < v_found DO
    IF v_count = 0 THEN
      DELETE FROM {{ o.table }} WHERE {{ record }} AND slot = v_slot{{ sql.on_mariadb(" AND `count` = 0") }};
    ELSE
{%- if o.mariadb() %}
      -- Leaves 0, because a connection uses the slot. Subtracts, because a trigger of the row can have counted into it.
      UPDATE {{ o.table }} SET `count` = `count` - v_count WHERE {{ record }} AND slot = v_slot;
      -- KILL QUERY again. If the slot is missing, a trigger has deleted it.
      IF ROW_COUNT() = 0 AND EXISTS (SELECT * FROM {{ o.table }} WHERE {{ record }} AND slot = v_slot) THEN
        SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'KILL QUERY';
      END IF;
{%- else %}
      -- Leaves 0, because a connection uses the slot. The next roll-up deletes it if it is still 0.
      UPDATE {{ o.table }} SET `count` = 0 WHERE {{ record }} AND slot = v_slot;
      SET v_sum = v_sum + v_count;
{%- endif %}
    END IF;
    SET v_done = v_done + 1;
    IF v_done < v_found THEN FETCH v_slots INTO v_slot, v_count, v_found{{ sql.on_mariadb(", v_sum") }}; END IF;
  END WHILE;
{%- if !o.mariadb() %}
  -- Last the row: a handler sees each of its errors, and takes back the slots.
  IF v_sum <> 0 THEN
{%- call update(o, of, record, "    ") %}{% endcall %}
  END IF;
{%- endif %}
END
