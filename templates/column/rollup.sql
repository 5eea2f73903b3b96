{%- import "macros.sql" as m -%}
{%- let k = sql.key("{v text}", ", ") -%}
{%- let fail = sql.routine(R::Fail) -%}
{%- let row = sql.key("{} = {v}", " AND ") -%}
{%- let of = o.column().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(IN p_slots INT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Moves the pending counts into {{ of }}, record by record in random order, in transactions of p_slots.
  If others hold a row or a slot, it commits, then waits for the row alone, then for each slot with the row. After
  the first 1205, it moves what is free; after the tenth, it ends. A part that the row rejects waits for the rest.
  While an UPDATE waits for an index or in a trigger, the rows that were moved before stay locked.
  In a transaction or with autocommit = 0, it skips what others hold (not at SERIALIZABLE) without an error.
{%- if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: p_slots, the number of slots after which a transaction ends with its record; NULL means {{ BATCH }}
Errors: 30013 {{ of }} rejects all counts of a record, which stay pending; the message contains the first
  1205, 1213{% if o.cluster %}, 1180, 3101{% endif %} others have locked a record, which may stay pending; repeat it
  After KILL
{%- if o.mariadb() %} or any error{% endif %}, ROLLBACK or disconnect: COMMIT or BEGIN can keep half a move.
Example: CALL {{ sql.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE {{ sql.key("{v} {type}", ";\n  DECLARE ") }};
  -- The step of a record: moves what is 'free'; then, if that is not all, waits for the 'row'; then for each 'slot' in
  -- turn and the row; 'free' again: done. Each wait begins a transaction. v_done: the slots in this one; 0: none open.
  DECLARE v_step VARCHAR(4) CHARACTER SET utf8mb4 DEFAULT 'free';
  DECLARE v_pending, v_slots, v_slot, v_moved, v_unused, v_done, v_errors, v_own, v_end INT DEFAULT 0;
  DECLARE v_why, v_locked, v_rejected VARCHAR(1000) CHARACTER SET utf8mb4;
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
  FETCH v_records INTO {{ sql.key("{v}", ", ") }}, v_pending, v_slots;
  WHILE NOT v_end AND v_errors < 10 DO
    IF v_done = 0 THEN CALL {{ sql.routine(R::Begin) }}(v_own); END IF;
    BEGIN
      -- Here, NOT FOUND is only KILL QUERY.
      DECLARE EXIT HANDLER FOR NOT FOUND SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'KILL QUERY';
      DECLARE EXIT HANDLER FOR 1205, 1213{% if o.cluster %}, 1180, 3101{% endif %}
        BEGIN
          IF NOT v_own THEN RESIGNAL; END IF;
          -- After 1205, this keeps the earlier records. 1213 has taken them back.
          COMMIT AND NO CHAIN NO RELEASE;
          SET v_locked = LEFT(CONCAT_WS(', ', {{ k }}), 40), v_errors = v_errors + 1, v_step = 'free', v_done = 0,
            v_moved = NULL, v_why = NULL;
        END;
      IF v_step = 'slot' THEN SELECT COUNT(*) INTO v_unused FROM {{ o.table }}
        WHERE {{ row }} AND slot = v_slot FOR UPDATE; END IF;
      IF v_step <> 'free' THEN SELECT COUNT(*) INTO v_unused FROM {{ of.table }} WHERE {{ row }} FOR UPDATE; END IF;
      {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR ") -}}
      CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, v_step = 'free', v_moved, v_why);
      SET v_done = v_done + v_slots, v_slot = IF(v_step = 'slot', v_slot, -1), v_step = CASE
        WHEN NOT v_own OR v_errors > 0 OR (v_moved IS NOT NULL AND v_why IS NOT NULL) THEN 'free'
        WHEN v_step = 'free' AND COALESCE(v_moved, 0) >= v_pending THEN 'free'
        WHEN v_step = 'free' AND v_moved IS NULL THEN 'row'
        ELSE 'slot' END;
      IF v_step = 'slot' THEN
        SELECT MIN(slot), IF(MIN(slot) IS NULL, 'free', 'slot') INTO v_slot, v_step FROM {{ o.table }}
         WHERE {{ row }} AND slot > v_slot AND `count` <> 0{{ m::own(o, "slot") }};
      END IF;
    END;
    IF v_step = 'free' THEN
      SET v_locked = IF(v_own AND v_moved IS NULL AND v_why IS NOT NULL, LEFT(CONCAT_WS(', ', {{ k }}), 40), v_locked);
      SET v_rejected = COALESCE(v_rejected, CONCAT(LEFT(CONCAT_WS(', ', {{ k }}), 99), ': ', IF(v_moved, v_why, NULL)));
      FETCH v_records INTO {{ sql.key("{v}", ", ") }}, v_pending, v_slots;
    END IF;
    IF v_own AND (v_end OR v_step <> 'free' OR v_done >= COALESCE(p_slots, {{ BATCH }})) THEN
      COMMIT AND NO CHAIN NO RELEASE;
      SET v_done = 0;
    END IF;
  END WHILE;
  IF COALESCE(v_rejected, v_locked) IS NOT NULL THEN
    CALL {{ fail }}(IF(v_rejected IS NULL, 1205, 30013), CONCAT('{{ sql.name.name() }}: ', CONCAT_WS('; ',
      CONCAT('others have locked ', v_locked, ' (1205)'), CONCAT(
{%- filter sql_string %}{{ of }} rejects the counts of {% endfilter %}, v_rejected))));
  END IF;
END
