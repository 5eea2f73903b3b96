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
  OUT p_left BOOLEAN,
  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. In an open transaction, adds the counts of a record to its row, except of slots that others hold.
  p_idle: deletes the slots that were 0 before. p_left: counts are left, because others hold slots; or they hold the
  row, or it is missing, and nothing changes. p_rejected: the error of the row that rejects the counts: no change.'
moving: BEGIN
  DECLARE v_slot, v_count, v_found, v_done BIGINT DEFAULT 0;
  DECLARE v_sum DECIMAL(65, 0) DEFAULT 0;
  DECLARE v_slots CURSOR FOR
    SELECT slot, `count`, COUNT(*) OVER (){{ sql.on_mariadb(", SUM(`count`) OVER ()") }}
      FROM {{ o.table }} WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  -- Not the fault of the value: takes the move back, raises it. KILL mostly runs no handler.
  DECLARE EXIT HANDLER FOR 1205, 1206, 1213, 1114, 1290, 1792, {# -#}
    {% if o.mariadb() %}1020, 1665, -- locks, disk, read-only, snapshot, binlog
    1317, 1969, -- KILL and max_statement_time, if they run a handler
    {%- else %}1836, 1665, -- locks, disk, read-only, binlog_format
    1175, -- a killed UPDATE with sql_safe_updates{% endif %}
    1044, 1142, 1143, 1370, 1449, 1054, 1146, 1305 -- privileges, definer, missing objects
    BEGIN
      BEGIN
        -- After a deadlock, there is no savepoint (1305).
        DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
        ROLLBACK TO SAVEPOINT slotted_move;
      END;
      RESIGNAL;
    END;
  -- All others are a rejection: the counts stay. NOT FOUND: a trigger's SIGNAL{{ sql.on_mariadb(", or KILL QUERY") }}.
  DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND
    BEGIN
      GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
      SET p_rejected = COALESCE(p_rejected, 'no message'); -- with max_error_count = 0
      ROLLBACK TO SAVEPOINT slotted_move;
    END;

  SAVEPOINT slotted_move;
  SELECT COUNT(*) INTO v_found FROM {{ of.table }} WHERE {{ record }} FOR UPDATE SKIP LOCKED;
  IF NOT v_found THEN SELECT COUNT(*) > 0 INTO p_left
    FROM {{ o.table }} WHERE {{ record }} AND `count` <> 0{{ m::own(o, "slot") }}; LEAVE moving; END IF;
  -- Locks the free slots. One needs no cursor: MAX is its value. If several, FETCH counts again: as many, or more.
  SELECT COUNT(*), MAX(slot), MAX(`count`){{ sql.on_mariadb(", SUM(`count`)") }}, {# -#}
         COUNT(NULLIF(`count`, 0)) < ( -- with those of others
         SELECT COUNT(*) FROM {{ o.table }} WHERE {{ record }} AND `count` <> 0{{ m::own(o, "slot") }})
    INTO v_found, v_slot, v_count{{ sql.on_mariadb(", v_sum") }}, p_left FROM {{ o.table }}
   WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  IF v_found > 1 THEN OPEN v_slots; FETCH v_slots INTO v_slot, v_count, v_found{{ sql.on_mariadb(", v_sum") }}; END IF;
{%- if o.mariadb() %}
  -- The row first: 1205 while it writes an index entry is fatal on MariaDB: no handler runs. No slot has changed yet.
  IF v_sum <> 0 THEN
{%- call update(o, of, record, "    ") %}{% endcall %}
    -- 0 rows: KILL QUERY can skip an UPDATE without an error (11.8): again. Still 0: a trigger keeps the old value.
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
      IF ROW_COUNT() = 0 AND EXISTS (SELECT * FROM {{ o.table }} WHERE {{ record }} AND slot = v_slot FOR UPDATE) THEN
        SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'KILL QUERY'; -- no slot: a trigger
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
  -- The row last: its error takes back the slots. KILL between leaves them at 0, until ROLLBACK.
  IF v_sum <> 0 THEN
{%- call update(o, of, record, "    ") %}{% endcall %}
  END IF;
{%- endif %}
END
