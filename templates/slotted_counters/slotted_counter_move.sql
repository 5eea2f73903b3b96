{%- let rollup = r.rollup() -%}
{{ r.create_as("PROCEDURE") }}(
  {{ rollup.declarations("p_first", "IN ", ",")|indent(2) }}  {{ rollup.declarations("p_last", "IN ", ",")|indent(2) }}  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Moves the pending counts of the records from p_first to p_last into {{ rollup.column() }}, in a transaction of its own if there is
  none. p_rejected is the message of the server if the table of the column rejects a total: then nothing is moved.
{%- endfilter %}
BEGIN
  DECLARE v_pending{% if table.mariadb() %}, v_total{% endif %} DECIMAL(65, 0);
  DECLARE v_own BOOLEAN DEFAULT FALSE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      IF v_own THEN
        ROLLBACK AND NO CHAIN NO RELEASE;
      END IF;
      RESIGNAL;
    END;
  -- Out of range, too long, NOT NULL, a trigger that signals or is rejected, CHECK on MySQL and on MariaDB.
  DECLARE EXIT HANDLER FOR SQLSTATE '22003', SQLSTATE '22001', SQLSTATE '23000', SQLSTATE '45000', 1644, 1643, 1442, 1366, 3819, 4025
    BEGIN
      GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
      IF v_own THEN
        ROLLBACK AND NO CHAIN NO RELEASE;
      END IF;
    END;
{%- if package.options.servers != Servers::Mariadb %}
  -- A temporary table with the name of one of the tables fails here (1137): MySQL 9.7.4 crashes if it fails in a statement with SET_VAR. No other
  -- aliases than below, for LOCK TABLES.
  DO (SELECT COUNT(*)
        FROM {{ table.name }} AS slots, {{ table.name }} AS target, {{ rollup.model.table }} AS parent, {{ rollup.model.table }}
       WHERE FALSE);
{%- endif %}
  -- Slots that have stayed 0 since the last call.
  {{ table.set_statement("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF, join_cache_level=0, max_seeks_for_key=1")|before(2) }}DELETE{{ table.by_index() }} target
    FROM (
      SELECT {{ rollup.record_list("") }}, slot
        FROM {{ table.name }}
       WHERE {{ rollup.in_range("")|indent(6) }}
         {{ rollup.of_node("")|before(9) }}AND `count` = 0
       LIMIT 18446744073709551615
         FOR UPDATE SKIP LOCKED
    ) AS idle
   STRAIGHT_JOIN {{ table.name }} AS target
      ON {{ rollup.slot_of("target", "idle")|indent(2) }};
  BEGIN
    -- Outside a transaction, SAVEPOINT creates nothing, and RELEASE fails.
    DECLARE EXIT HANDLER FOR 1305
      SET v_own = TRUE;
    SAVEPOINT slotted_steps;
    RELEASE SAVEPOINT slotted_steps;
  END;
  IF v_own THEN
    -- Without gap locks: connections can insert slots. READ COMMITTED needs a binary log of rows (1665).
    IF @@SESSION.binlog_format <> 'STATEMENT' THEN
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    END IF;
    START TRANSACTION;
  END IF;
  -- Locks both tables until the end of the transaction: MariaDB crashes if the UPDATE below waits for RENAME TABLE.
  {{ table.set_statement("innodb_snapshot_isolation=OFF, join_cache_level=0, max_seeks_for_key=1")|before(2) }}SELECT{{ table.by_index() }} COUNT(*){% if table.mariadb() %}, SUM(pending)
    INTO v_pending, v_total{% else %}
    INTO v_pending{% endif %}
    FROM {{ rollup.pending()|indent(4) }};
{%- if table.mariadb() %}
  {{ table.only_mariadb("begin") }}IF v_pending > 0 AND {{ rollup.one_record() }}
    AND {{ rollup.has_check()|indent(7) }} THEN
    -- Changes the column and undoes it: no handler of MariaDB catches the CHECK of an UPDATE of several tables (4025).
    SAVEPOINT slotted_steps;{{ table.only_mariadb("end") }}
    {{ table.over_snapshot()|before(4) }}{{ table.only_mariadb("begin") }}UPDATE {{ rollup.model.table }} AS parent
       SET parent.{{ rollup.model.target.typed() }} = COALESCE(parent.{{ rollup.model.target.typed() }}, 0) + v_total
     WHERE {{ rollup.parent_of("p_first")|indent(5) }};
    ROLLBACK TO SAVEPOINT slotted_steps;
  END IF;{{ table.only_mariadb("end") }}
{%- endif %}
  IF v_pending > 0 THEN
    {{ table.set_statement("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF, join_cache_level=0, max_seeks_for_key=1")|before(4) }}UPDATE{{ table.by_index() }} (
      SELECT {{ rollup.record_list("") }}, slot, pending,
             SUM(pending) OVER (PARTITION BY {{ rollup.record_list("") }}) AS total
        FROM {{ rollup.pending()|indent(8) }}
    ) AS moved
     STRAIGHT_JOIN {{ rollup.model.table }} AS parent
        ON {{ rollup.joined("moved")|indent(4) }}
     STRAIGHT_JOIN {{ table.name }} AS slots
        ON {{ rollup.slot_of("slots", "moved")|indent(4) }}
       SET parent.{{ rollup.model.target.typed() }} = COALESCE(parent.{{ rollup.model.target.typed() }}, 0) + moved.total,
           {{ rollup.kept()|indent(4) }}{% if !rollup.model.keep.is_empty() %}
           {% endif %}slots.`count` = slots.`count` - moved.pending;
  END IF;
  IF v_own THEN
    COMMIT AND NO CHAIN NO RELEASE;
  END IF;
END
