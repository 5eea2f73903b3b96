{%- import "macros.sql" as m -%}
{%- let record = sql.key("{v text}", ", ") -%}
{%- let fail = sql.routine(R::Fail) -%}
{%- let row = sql.key("{} = {v}", " AND ") -%}
{%- let of = o.column().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(IN p_slots INT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Moves the pending counts into {{ of }}, record by record in random order, in transactions of p_slots.
  If others hold a row or a slot, it commits, then waits for this lock alone. If the row rejects a part or is held
  again, it waits for row and slots together. After the first 1205, it waits no more, and moves what is free.
  While an UPDATE waits for an index or in a trigger, the rows that were moved before stay locked.
  In a transaction or with autocommit = 0, it waits for no row and no slot, keeps its locks, and can leave counts.
{%- if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: p_slots, the number of slots after which a transaction ends with its record; NULL means {{ BATCH }}
Errors: 30013 {{ of }} rejects the counts of at least one record, which stay pending
  1205, 1213{% if o.cluster %}, 1180, 3101{% endif %}
{%- if o.mariadb() %}, 1020{% endif %} others have locked a record, which may stay pending; repeat your transaction
  After KILL
{%- if o.mariadb() %} or any error{% endif %}, ROLLBACK or disconnect: COMMIT or BEGIN can keep half a move.
Example: CALL {{ sql.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE {{ sql.key("{v} {type}", ";\n  DECLARE ") }};
  -- The step for a record: -2 moves what is free, -1 waits for its row, 0 to 65535 for this slot, 65536 for both.
  DECLARE v_next, v_wait INT DEFAULT -2;
  DECLARE v_pending, v_slots, v_moved, v_done, v_errors, v_unused, v_own, v_end INT DEFAULT 0;
  DECLARE v_message, v_locked, v_rejected VARCHAR(1000) CHARACTER SET utf8mb4;
  DECLARE v_records CURSOR FOR
    SELECT {{ sql.key("slots.{}", ", ") }}, SUM(slots.`count` <> 0), COUNT(*)
      FROM {{ o.table }} AS slots JOIN {{ of.table }} AS parent ON {{ sql.key("parent.{} = slots.{}", " AND ") }}
{{- m::own(o, "slots.slot") }}
     GROUP BY {{ sql.key("slots.{}", ", ") }} ORDER BY RAND();
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      IF v_own THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
      RESIGNAL;
    END;

  OPEN v_records;
  WHILE NOT v_end DO
    IF v_wait = -2 THEN FETCH v_records INTO {{ sql.key("{v}", ", ") }}, v_pending, v_slots; END IF;
    BEGIN
      -- All queries return a row, so that only KILL QUERY is NOT FOUND. After 1213, all since COMMIT is undone.
      DECLARE EXIT HANDLER FOR NOT FOUND SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'KILL QUERY';
      DECLARE EXIT HANDLER FOR 1205, 1213{% if o.cluster %}, 1180, 3101{% endif %}
        BEGIN
          IF NOT v_own THEN RESIGNAL; END IF;
          COMMIT AND NO CHAIN NO RELEASE;
          SET v_locked = LEFT(CONCAT_WS(', ', {{ record }}), 40), v_errors = v_errors + 1;
          SET v_done = 0, v_wait = -2, v_end = v_end OR v_errors >= 10;
        END;
      IF v_own AND v_done > 0 AND (v_end OR v_wait > -2 OR v_done >= COALESCE(p_slots, {{ BATCH }})) THEN
        COMMIT AND NO CHAIN NO RELEASE;
        SET v_done = 0;
      END IF;
      IF NOT v_end THEN
        IF v_done = 0 THEN CALL {{ sql.routine(R::Begin) }}(v_own); END IF;
        IF v_wait IN (-1, 65536) THEN
          SELECT COUNT(*) INTO v_unused FROM {{ of.table }} WHERE {{ row }} FOR UPDATE;
        END IF;
        IF v_wait = 65536 THEN
          SELECT COUNT(*) INTO v_unused FROM {{ o.table }} WHERE {{ row }} FOR UPDATE;
        ELSEIF v_wait >= 0 THEN
          SELECT COUNT(*) INTO v_unused FROM {{ o.table }} WHERE {{ row }} AND slot = v_wait FOR UPDATE;
        END IF;
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, v_wait = -2, v_slots, v_moved, v_message);
        IF v_message IS NOT NULL OR COALESCE(v_moved, 0) < v_pending THEN
          SELECT IF(v_message IS NOT NULL OR v_moved IS NULL AND v_wait >= 0, 65536, IF(v_moved IS NULL, -1, MIN(slot)))
            INTO v_next FROM {{ o.table }} WHERE {{ row }} AND slot > v_wait AND `count` <> 0{{ m::own(o, "slot") }};
        END IF;
        IF v_message IS NOT NULL AND IF(v_own AND v_errors = 0, v_wait = 65536, v_moved >= v_pending) THEN
          SET v_rejected = COALESCE(v_rejected, CONCAT(LEFT(CONCAT_WS(', ', {{ record }}), 99), ': ', v_message));
        END IF;
        SET v_done = v_done + v_slots, v_wait = IF(v_own AND v_errors = 0 AND v_next > v_wait, v_next, -2), v_next = -2;
      END IF;
    END;
  END WHILE;
  IF COALESCE(v_rejected, v_locked) IS NOT NULL THEN
    CALL {{ fail }}(IF(v_rejected IS NULL, 1205, 30013), CONCAT('{{ sql.name.name() }}: ', CONCAT_WS('; ',
      CONCAT('others have locked ', v_locked, ' (1205)'), CONCAT(
{%- filter sql_string %}{{ of }} rejects the counts of {% endfilter %}, v_rejected))));
  END IF;
END
