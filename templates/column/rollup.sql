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
  If others hold the row or slots, it commits and waits: for the row, then slot by slot, each in a transaction. After
  the first 1205 or 1213, it skips what others hold. The UPDATE of a row can still wait (index, trigger), while the rows
  moved before stay locked; after ten errors, it ends.
{%- if o.mariadb() %} 1205 at an index ends it, in an open transaction.{% endif %}
  A transaction that locks the row and calls increment, or compact, can deadlock with it: mostly the roll-up gets 1213.
  In a transaction or with autocommit = 0, it skips what others hold (SERIALIZABLE waits), and locks until COMMIT.
{%- if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: p_slots, the number of slots after which a transaction ends with its record; NULL means {{ BATCH }}
Errors: 30013 {{ of }} rejects the counts of a record, which stay pending; the message names one and the reason
  1205, 1213{% if o.cluster %}, 1180, 3101{% endif %} others hold records, or slots that a row needs to accept the rest
  After KILL{% if o.mariadb() %} or an error other than 30013{% endif %}: ROLLBACK or disconnect, then repeat. {# -#}
  COMMIT or BEGIN would save half a move.
Example: CALL {{ sql.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE {{ sql.key("{v} {type}", ";\n  DECLARE ") }};
  DECLARE v_slots, v_slot, v_found, v_left, v_done, v_errors, v_own, v_end INT DEFAULT 0;
  DECLARE v_why, v_locked, v_rejected VARCHAR(1000) CHARACTER SET utf8mb4;
  DECLARE v_records CURSOR FOR -- read at OPEN: COMMIT does not close it
    SELECT {{ sql.key("slots.{}", ", ") }}, COUNT(*)
      FROM {{ o.table }} AS slots JOIN {{ of.table }} AS parent ON {{ sql.key("parent.{} = slots.{}", " AND ") }}
{{- m::own(o, "slots.slot") }}
     GROUP BY {{ sql.key("slots.{}", ", ") }} ORDER BY RAND();
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      IF v_own THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
      RESIGNAL;
    END;

  OPEN v_records; FETCH v_records INTO {{ sql.key("{v}", ", ") }}, v_slots;
  WHILE NOT v_end AND v_errors < 10 DO
    IF v_done = 0 THEN CALL {{ sql.routine(R::Begin) }}(v_own); END IF; -- v_done: slots since COMMIT
    BEGIN
{%- if o.mariadb() %}
      -- KILL QUERY can end a SELECT INTO as NOT FOUND (11.8). It is not the end of v_records.
      DECLARE EXIT HANDLER FOR NOT FOUND SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'KILL QUERY';
{%- endif %}
      DECLARE EXIT HANDLER FOR 1205, 1213{% if o.cluster %}, 1180, 3101{% endif %}
        BEGIN
          IF NOT v_own THEN RESIGNAL; END IF;
          COMMIT AND NO CHAIN NO RELEASE; -- _move has undone its own. 1213: none are left
          SET v_locked = LEFT(CONCAT_WS(', ', {{ k }}), 79), v_errors = v_errors + 1, v_done = 0;
        END;
      {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR ") -}}
      CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, TRUE, v_left, v_why);
      -- Waits for the row alone (v_slot -1), then for each slot left and then the row, because a wait with the row
      -- locked would block child rows. Each in a READ COMMITTED transaction. v_slot NULL: no wait; v_found = 0: no row.
      SET v_done = v_done + v_slots, v_found = 1, v_slot = IF(v_own AND v_errors = 0, -1, NULL);
      WHILE v_left AND v_found AND v_slot IS NOT NULL AND v_why IS NULL DO
        COMMIT AND NO CHAIN NO RELEASE;
        CALL {{ sql.routine(R::Begin) }}(v_own);
        IF v_slot >= 0 THEN SELECT COUNT(*) INTO v_found
          FROM {{ o.table }} WHERE {{ row }} AND slot = v_slot FOR UPDATE; END IF; -- locks
        SELECT COUNT(*) INTO v_found FROM {{ of.table }} WHERE {{ row }} FOR UPDATE;
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR ") -}}
        CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, FALSE, v_left, v_why);
        SELECT MIN(slot) INTO v_slot FROM {{ o.table }}
         WHERE {{ row }} AND `count` <> 0 AND slot > v_slot{{ m::own(o, "slot") }};
      END WHILE;
      IF v_why IS NOT NULL THEN
        -- With the slots that others hold, the row may accept the sum (-5 here, 9 held): 1205. compact waits for them.
        SET v_why = CONCAT(LEFT(CONCAT_WS(', ', {{ k }}), 99), ': ', v_why);
        IF v_left THEN SET v_locked = v_why; ELSE SET v_rejected = COALESCE(v_rejected, v_why); END IF;
      END IF;
    END;
    FETCH v_records INTO {{ sql.key("{v}", ", ") }}, v_slots;
    IF v_own AND (v_end OR v_done >= COALESCE(p_slots, {{ BATCH }})) THEN
      COMMIT AND NO CHAIN NO RELEASE;
      SET v_done = 0;
    END IF;
  END WHILE;
  IF COALESCE(v_rejected, v_locked) IS NOT NULL THEN
    CALL {{ fail }}(IF(v_rejected IS NULL, 1205, 30013), CONCAT('{{ sql.name.name() }}: ', CONCAT_WS('; ',
      CONCAT('others have locked ', LEFT(v_locked, IF(v_rejected IS NULL, 79, 20)), ' (1205)'),
      CONCAT({% filter sql_string %}{{ of }} rejects the counts of {% endfilter %}, v_rejected))));
  END IF;
END
