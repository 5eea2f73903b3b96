{%- import "macros.sql" as m -%}
{%- let of = o.column().expect("the package has a column") -%}
{%- let record = sql.key("{} = {p}", " AND ") -%}
{%- let sums = sql.on_mariadb(", v_sum, p_slots") -%}
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
      -- These end the move, with the handler above: locks, KILL, the server; privileges, objects. All others reject.
      DECLARE EXIT HANDLER FOR 1205, 1206, 1213, 1317, 1114, 1290, {# -#}
        {% if o.mariadb() %}1020, 1665, 1969{% else %}1836, 3024{% endif %},
        1044, 1142, 1143, 1370, 1449, 1054, 1146, 1305 RESIGNAL;
      -- A trigger can signal NOT FOUND. With max_error_count = 0, there is no MESSAGE_TEXT.
      DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND
        BEGIN
          GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
          SET {{ sql.on_mariadb("v_found = 0, ") }}p_rejected = COALESCE(p_rejected, 'no message');
          ROLLBACK TO SAVEPOINT slotted_move;
        END;
{%- call update(o, of, record, "      ") %}{% endcall %}
{%- if o.mariadb() %}
      -- KILL QUERY can end an UPDATE without error or change (MariaDB 11.8): repeat it and its triggers. Below, too.
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
  p_idle: deletes the slots that are 0. p_slots: the number of slots that it moved or, with p_rejected, that the row
  rejects; 0 if there is no row, or others hold it. p_rejected: the error of the row, which changes nothing.'
moving: BEGIN
  DECLARE v_slot, v_count, v_found BIGINT DEFAULT 0;
  DECLARE v_sum DECIMAL(65, 0) DEFAULT 0;
  DECLARE v_slots CURSOR FOR
    SELECT slot, `count`{{ sql.on_mariadb(", SUM(`count`) OVER (), COUNT(NULLIF(`count`, 0)) OVER ()") }}
      FROM {{ o.table }} WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  -- The end of the cursor, whose rows OPEN has copied, or KILL QUERY in a SELECT: then nothing is moved.
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      BEGIN
        -- After a deadlock, there is no savepoint. RESIGNAL raises the first error.
        DECLARE CONTINUE HANDLER FOR 1181, 1305 BEGIN END;
        ROLLBACK TO SAVEPOINT slotted_move;
      END;
      RESIGNAL;
    END;

  SAVEPOINT slotted_move;
  SELECT COUNT(*), 0 INTO v_found, p_slots FROM {{ of.table }} WHERE {{ record }} FOR UPDATE SKIP LOCKED;
  IF NOT v_found THEN LEAVE moving; END IF;
  -- Locks the free slots, v_found of them. A single one needs no cursor, which would cost as much as an UPDATE.
  SELECT COUNT(*), MAX(slot), MAX(`count`){{ sql.on_mariadb(", SUM(`count`), COUNT(NULLIF(`count`, 0))") }}
    INTO v_found, v_slot, v_count{{ sums }} FROM {{ o.table }}
   WHERE {{ record }} AND (`count` <> 0 OR p_idle){{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED;
  IF v_found > 1 THEN OPEN v_slots; FETCH v_slots INTO v_slot, v_count{{ sums }}; END IF;
{%- if o.mariadb() %}
  -- First the row: MariaDB skips all handlers for a 1205 at an index, so no slot may have changed by then.
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
      SET v_sum = v_sum + v_count, p_slots = p_slots + 1;
{%- endif %}
    END IF;
    IF v_found = 1 THEN SET v_found = 0; ELSE FETCH v_slots INTO v_slot, v_count{{ sums }}; END IF;
  END WHILE;
{%- if !o.mariadb() %}
  -- Last the row: the handlers see each of its errors, and take back the slots.
{%- call add_to_row(o, of, record) %}{% endcall %}
{%- endif %}
END
