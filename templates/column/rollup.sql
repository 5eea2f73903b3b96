{%- import "macros.sql" as m -%}
{%- let of = o.column.as_ref().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Moves the pending counts into {{ of }}: in batches, which skip what is locked, then record by record,
  waiting for the row and for one slot. No total changes. With autocommit = 1, each statement commits by itself.
  In a transaction, it is a part of it, goes record by record, and moves what the snapshot of the transaction contains.
  In REPEATABLE READ, the first increments of neighbouring records then wait until COMMIT.{% if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: p_records, the number of records in a batch, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}
Errors: 30012 p_records is out of range{% if !o.mariadb() %}; 30022 optimizer_switch contains hypergraph_optimizer=on{% endif %}
  30013 {{ of }} rejects the total of a record: it stays pending, all others were moved
  1205 a record is locked: it stays pending, all others were moved; in a transaction, repeat the transaction
Example: CALL {{ sql.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE {{ sql.key("{v} {type}", ";\n  DECLARE ") }};
  DECLARE v_round, v_size, v_free INT DEFAULT 1;
  DECLARE v_inside BOOLEAN DEFAULT NOT @@SESSION.autocommit;
  DECLARE v_end BOOLEAN;
  DECLARE v_message, v_rejected VARCHAR(512) CHARACTER SET utf8mb4;
  -- The first record of each batch.
  DECLARE v_batches CURSOR FOR
    SELECT {{ sql.key("{}", ", ") }}
      FROM (SELECT {{ sql.key("slots.{}", ", ") }}, ROW_NUMBER() OVER (ORDER BY {{ sql.key("slots.{}", ", ") }}) AS entry
              FROM {{ o.table }} AS slots JOIN {{ of.table }} AS parent ON {{ sql.key("parent.{} = slots.{}", " AND ") }}
             WHERE slots.`count` <> 0{{ m::own(o, "slots.slot") }} GROUP BY {{ sql.key("slots.{}", ", ") }}) AS numbered
     WHERE MOD(entry - 1, v_size) = 0
     ORDER BY {{ sql.key("{}", ", ") }};
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;
  DECLARE CONTINUE HANDLER FOR 1568 SET v_inside = TRUE;{% if o.cluster %}
  -- Another node has changed the row: the next call moves the counts.
  DECLARE CONTINUE HANDLER FOR 1180, 1213, 3101
    IF v_inside THEN
      RESIGNAL;
    END IF;{% endif %}

  IF p_records NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    CALL {{ sql.routine(R::Fail) }}(30012, '{{ sql.name.name() }}: p_records must be between 1 and {{ RECORDS_MAX }}');
  END IF;
  -- 1568: in a transaction, in which a scan would lock gaps.
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  IF NOT v_inside THEN
    -- Slots that have stayed 0 since the last call.
    {{ sql.exempt_many(4) -}}
    DELETE slots
      FROM (SELECT {{ sql.key("{}", ", ") }}, slot FROM {{ o.table }} WHERE `count` = 0{{ m::own(o, "slot") }} LIMIT 10000000 FOR UPDATE SKIP LOCKED) AS idle
     STRAIGHT_JOIN {{ o.table }} AS slots FORCE INDEX (PRIMARY) ON {{ sql.key("slots.{} = idle.{}", " AND ") }} AND slots.slot = idle.slot;
  END IF;
  -- Only the UPDATE of one record notices a trigger that changes the value
  {%- if o.mariadb() %}, and lets a handler see errors of checks and keys{% endif %}.
  SET v_round = IF(v_inside OR p_records = 1 OR EXISTS (
    SELECT 1 FROM information_schema.TRIGGERS
     WHERE (EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, EVENT_MANIPULATION) = (DATABASE(), {{ of.table.name()|sql_string }}, 'UPDATE'){% if o.mariadb() %}
     UNION ALL SELECT 1 FROM information_schema.CHECK_CONSTRAINTS
     WHERE (CONSTRAINT_SCHEMA, TABLE_NAME) = (DATABASE(), {{ of.table.name()|sql_string }}) AND LOCATE({{ of.column|sql_string }}, CHECK_CLAUSE)
     UNION ALL SELECT 1 FROM information_schema.KEY_COLUMN_USAGE
     WHERE (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME) = (DATABASE(), {{ of.table.name()|sql_string }}, {{ of.column.name()|sql_string }})
     UNION ALL SELECT 1 FROM information_schema.COLUMNS
     WHERE (TABLE_SCHEMA, TABLE_NAME) = (DATABASE(), {{ of.table.name()|sql_string }}) AND LOCATE({{ of.column|sql_string }}, GENERATION_EXPRESSION){% endif %}
  ), 3, 1);
  -- Round 2 moves what was counted during round 1.
  WHILE v_round <= 4 DO
    SET v_size = IF(v_round > 2, 1, COALESCE(p_records, {{ BATCH }})), v_end = FALSE;
    OPEN v_batches;
    FETCH v_batches INTO {{ sql.key("{v}", ", ") }};
    WHILE NOT v_end DO
      IF v_round = 3 THEN
        -- Skips a row that is locked.
        {{ sql.exempt(8) }}SELECT COUNT(*) INTO v_free FROM {{ of.table }} AS parent WHERE {{ sql.key("parent.{} = {v}", " AND ") }} FOR UPDATE SKIP LOCKED;
      ELSEIF v_round = 4 THEN
        -- Waits for a slot that other transactions have locked each time. Holds nothing meanwhile.
        {{ sql.exempt(8) }}SELECT COUNT(*) INTO v_free
          FROM (SELECT slot FROM {{ o.table }} WHERE {{ sql.key("{} = {v}", " AND ") }} AND `count` <> 0{{ m::own(o, "slot") }} ORDER BY RAND() LIMIT 1) AS any_slot
         STRAIGHT_JOIN {{ o.table }} AS slots FORCE INDEX (PRIMARY) ON {{ sql.key("slots.{} = {v}", " AND ") }} AND slots.slot = any_slot.slot FOR UPDATE;
      END IF;
      IF v_free THEN
        CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, v_size, FALSE, v_message);
        IF v_round = 4 AND v_message IS NOT NULL THEN
          -- The total may fit with the slots that were locked.
          CALL {{ sql.routine(R::Move) }}({{ sql.key("{v}", ", ") }}, 1, TRUE, v_message);
          SET v_rejected = COALESCE(v_rejected, CONCAT(CONCAT_WS(', ', {{ sql.key("{v text}", ", ") }}), ': ', v_message));
        END IF;
      END IF;
      FETCH v_batches INTO {{ sql.key("{v}", ", ") }};
    END WHILE;
    CLOSE v_batches;
    SET v_round = v_round + 1;
  END WHILE;
  IF v_rejected IS NOT NULL THEN
    CALL {{ sql.routine(R::Fail) }}(30013, CONCAT({% filter sql_string %}{{ sql.name.name() }}: {{ of }} rejects the total of {% endfilter %}, v_rejected));
  END IF;
END
