{%- let rollup = r.rollup() -%}
{%- let settings = "innodb_snapshot_isolation=OFF, sql_safe_updates=OFF, join_cache_level=0, max_seeks_for_key=1" -%}
{{ r.create_as("PROCEDURE") }}(
  {{ rollup.declarations("p_first", "IN ", ",")|indent(2) }}  {{ rollup.declarations("p_last", "IN ", ",")|indent(2) }}  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Moves the pending counts of the records from p_first to p_last into {{ rollup.name() }}, in a transaction of its own if there is
  none. p_rejected is the message of the server if the table of the column rejects a total: then nothing is moved.
{%- endfilter %}
BEGIN
  DECLARE v_pending BIGINT;
  DECLARE v_error INT;
  DECLARE v_own BOOLEAN DEFAULT FALSE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      GET DIAGNOSTICS CONDITION 1 v_error = MYSQL_ERRNO, p_rejected = MESSAGE_TEXT;
      IF v_own THEN
        ROLLBACK AND NO CHAIN NO RELEASE;
      END IF;
      -- No rejection: an error outside of the UPDATE, of a lock, the end of a statement, a disk, memory, a privilege, an object that is missing.
      IF v_pending IS NULL OR v_error IN (1020, 1205, 1206, 1213, 1317, 1969, 3024, 1021, 1030, 1038, 1114, 1047, 1142, 1143, 1227, 1370, 1054, 1146, 1305, 1449) THEN
        RESIGNAL;
      END IF;
    END;
{%- if package.options.servers != Servers::Mariadb %}
  -- MySQL 9.7.4 crashes if a statement with SET_VAR fails because a table is temporary (1137): fails before. Aliases as below, for LOCK TABLES.
  DO (SELECT COUNT(*) FROM {{ table.name }} AS slots, {{ table.name }} AS target, {{ rollup.parent }} AS parent
       WHERE FALSE AND EXISTS (SELECT * FROM {{ rollup.parent }}));
{%- endif %}
  -- Slots whose count is 0. LIMIT keeps the subquery apart, and the settings find the rows by the key: no other rows are locked.
  {{ table.set_statement(settings)|before(2) }}DELETE{{ table.by_index() }} target
    FROM (
      SELECT {{ rollup.list("{}") }}, slot
        FROM {{ table.name }}
       WHERE {{ rollup.in_range("")|indent(6) }}
         AND {{ rollup.of_node("") }}
         AND `count` = 0
       LIMIT 18446744073709551615
         FOR UPDATE SKIP LOCKED
    ) AS idle
   STRAIGHT_JOIN {{ table.name }} AS target
      ON {{ rollup.all("target.{} = idle.{}")|indent(2) }}
     AND target.slot = idle.slot;
  {{ table.outside_transaction("v_own")|indent(2) }}
  IF v_own THEN
    -- Without gap locks: connections can insert slots. READ COMMITTED needs a binary log of rows (1665).
    IF @@SESSION.binlog_format <> 'STATEMENT' THEN
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    END IF;
    START TRANSACTION;
  END IF;
  -- Locks both tables until the end of the transaction: MariaDB crashes if the UPDATE below waits for RENAME TABLE.
  {{ table.set_statement("innodb_snapshot_isolation=OFF, join_cache_level=0, max_seeks_for_key=1")|before(2) }}SELECT{{ table.by_index() }} COUNT(*)
    INTO v_pending
    {{ rollup.pending()|indent(2) }};
{%- if table.mariadb() %}
  {{ table.only_mariadb("begin") }}IF v_pending > 0 AND {% for (first, last) in rollup.bounds("p_first").into_iter().zip(rollup.bounds("p_last")) %}{{ first }} = {{ last }}{% if !loop.last %} AND {% endif %}{% endfor %} THEN
    -- Handlers of MariaDB catch CHECK (4025), 1062 and 1452 only for the first table of an UPDATE of several tables.
    SET v_pending = 0;{{ table.only_mariadb("end") }}
    {{ table.set_statement(settings)|before(4) }}{{ table.only_mariadb("begin") }}UPDATE {{ rollup.parent }} AS parent
     STRAIGHT_JOIN (
       {{ rollup.moved()|indent(7) }}
     ) AS moved
     STRAIGHT_JOIN {{ table.name }} AS slots
        ON {{ rollup.all("slots.{} = moved.{}")|indent(4) }}
       AND slots.slot = moved.slot
       SET {{ rollup.changes()|indent(7) }}
     WHERE {% for (column, first) in rollup.compared("parent.{}", "p_first") %}{{ column }} = {{ first }}{% if !loop.last %}
        AND {% endif %}{% endfor %};
  END IF;{{ table.only_mariadb("end") }}
{%- endif %}
  IF v_pending > 0 THEN
    {{ table.set_statement(settings)|before(4) }}UPDATE{{ table.by_index() }} (
      {{ rollup.moved()|indent(6) }}
    ) AS moved
     STRAIGHT_JOIN {{ rollup.parent }} AS parent
        ON {{ rollup.all("parent.{} = moved.{}")|indent(4) }}
     STRAIGHT_JOIN {{ table.name }} AS slots
        ON {{ rollup.all("slots.{} = moved.{}")|indent(4) }}
       AND slots.slot = moved.slot
       SET {{ rollup.changes()|indent(7) }};
  END IF;
  SET v_pending = NULL;
  IF v_own THEN
    COMMIT AND NO CHAIN NO RELEASE;
  END IF;
END
