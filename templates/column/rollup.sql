{%- import "macros.sql" as m -%}
{%- let record = sql.key("{v text}", ", ") -%}
{%- let fail = sql.routine(R::Fail) -%}
{%- let slot = sql.key("{} = {v} AND ", "") + "slot = v_slot" -%}
{%- let of = o.column().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(IN p_records INT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Moves the pending counts into {{ of }}, in transactions of its own: first what is free, p_records records
  per transaction; then record by record, waiting for the row; then slot by slot, waiting for the slot.
  While it waits, it holds nothing else. It waits in random order, because a round ends at the first timeout.
  In an open transaction or with autocommit = 0, it keeps all locks until COMMIT.
{%- if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: p_records, the number of records in a transaction; NULL means {{ BATCH }}
Errors: 30013 {{ of }} rejects the total of a record: its counts stay pending, all other free ones were moved
  1205, 1213
{%- if o.cluster %}, 1180, 3101{% endif %}
{%- if o.mariadb() %}, 1020{% endif %} others have locked a record, which may stay pending; repeat your transaction
  After another error or KILL, ROLLBACK or disconnect: COMMIT or BEGIN would save half a move, and counts would be lost.
Example: CALL {{ sql.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE {{ sql.key("{v} {type}", ";\n  DECLARE ") }};
  DECLARE v_slot, v_free, v_unused, v_done, v_waits, v_round INT DEFAULT 0;
  DECLARE v_own, v_end BOOLEAN DEFAULT FALSE;
  DECLARE v_message, v_locked, v_rejected VARCHAR(1000) CHARACTER SET utf8mb4;
  DECLARE v_records CURSOR FOR
    SELECT {{ sql.key("slots.{}", ", ") }}, IF(v_round = 2, slots.slot, NULL)
      FROM {{ o.table }} AS slots JOIN {{ of.table }} AS parent ON {{ sql.key("parent.{} = slots.{}", " AND ") }}
     WHERE (slots.`count` <> 0 OR v_round = 0){{ m::own(o, "slots.slot") }}
     GROUP BY {{ sql.key("slots.{}", ", ") }}, IF(v_round = 2, slots.slot, NULL)
     ORDER BY IF(v_round = 0, 0, RAND());
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      IF v_own THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
      RESIGNAL;
    END;

  WHILE v_round <= 2 DO
    -- Round 1 tries again what round 0 has left, unless an old snapshot does not contain it.
    IF v_round = 1 AND v_own THEN SET v_locked = NULL, v_rejected = NULL; END IF;
    OPEN v_records;
    WHILE NOT v_end DO
      BEGIN
        DECLARE EXIT HANDLER FOR 1205, 1213{% if o.cluster %}, 1180, 3101{% endif %}
          BEGIN
            IF NOT v_own THEN RESIGNAL; END IF;
            COMMIT AND NO CHAIN NO RELEASE;
            SET v_locked = LEFT(CONCAT_WS(', ', {{ record }}), 99), v_waits = v_waits + 1;
            SET v_done = 0, v_end = v_end OR v_round > 0 OR v_waits >= 10;
          END;
        FETCH v_records INTO {{ sql.key("{v}", ", ") }}, v_slot;
        IF v_own AND v_done > 0 AND (v_end OR v_round > 0 OR v_done >= COALESCE(p_records, {{ BATCH }})) THEN
          COMMIT AND NO CHAIN NO RELEASE;
          SET v_done = 0;
        END IF;
        IF NOT v_end THEN
          IF v_done = 0 THEN CALL {{ sql.routine(R::Begin) }}(v_own); END IF;
          SET v_done = v_done + 1, v_free = 0, v_message = NULL;
          IF v_round = 1 THEN
            SELECT COUNT(*) INTO v_unused FROM {{ of.table }} WHERE {{ sql.key("{} = {v}", " AND ") }} FOR UPDATE;
          ELSEIF v_round = 2 THEN
            -- A slot that is free was moved in round 1, unless the row rejects the total, or round 1 ended early.
            SELECT COUNT(*) INTO v_free FROM {{ o.table }} WHERE {{ slot }} FOR UPDATE SKIP LOCKED;
            SELECT COUNT(*) INTO v_unused FROM {{ o.table }} WHERE {{ slot }} FOR UPDATE;
          END IF;
          IF NOT v_free OR v_locked IS NOT NULL THEN
            {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR") }}
            CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, v_round = 0, NOT v_own, v_message);
          END IF;
          SET v_rejected = COALESCE(v_rejected, CONCAT(LEFT(CONCAT_WS(', ', {{ record }}), 99), ': ', v_message));
        END IF;
      END;
    END WHILE;
    CLOSE v_records;
    SET v_round = v_round + 1, v_done = 0, v_end = FALSE;
  END WHILE;
  IF COALESCE(v_rejected, v_locked) IS NOT NULL THEN
    CALL {{ fail }}(IF(v_rejected IS NULL, 1205, 30013), CONCAT('{{ sql.name.name() }}: ', CONCAT_WS('; ',
      CONCAT('others have locked ', v_locked, ' (1205)'), CONCAT(
{%- filter sql_string %}{{ of }} rejects the total of {% endfilter %}, v_rejected))));
  END IF;
END
