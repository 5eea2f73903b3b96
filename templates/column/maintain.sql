{%- import "macros.sql" as m -%}
{%- let of = o.column().expect("the package has a column") -%}
{%- let record = sql.key("{} = {p}", " AND ") -%}
{{ sql.create("PROCEDURE") }}(IN p_step VARCHAR(7) CHARACTER SET utf8mb4,
  {{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_value BIGINT)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Resets or compacts a record, in a transaction of its own, unless one is open.
  Locks the row, then its slots: a roll-up that waits for them can get 1213.'
BEGIN
  DECLARE v_column, v_others DECIMAL(65, 0);
  DECLARE v_found, v_left, v_own INT DEFAULT 0;
  DECLARE v_rejected VARCHAR(512) CHARACTER SET utf8mb4;
{%- if o.mariadb() %}
  -- KILL QUERY can end a statement as NOT FOUND, which would be a warning.
  DECLARE EXIT HANDLER FOR NOT FOUND
    BEGIN
      IF v_own THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
      SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'KILL QUERY';
    END;
{%- endif %}
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      IF v_own THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
      RESIGNAL;
    END;

  CALL {{ sql.routine(R::Begin) }}(v_own);
  -- Locks the row, then all slots. Reads the row last: it can have been inserted while this waited for the slots.
  SELECT COUNT(*) INTO v_found FROM {{ of.table }} WHERE {{ record }} FOR UPDATE; -- only locks
  SELECT COALESCE(SUM({% if o.cluster %}0{% else %}IF(slot > 0, `count`, 0){% endif %}), 0) INTO v_others
    FROM {{ o.table }} WHERE {{ record }}{{ m::own(o, "slot") }} FOR UPDATE;
  SELECT COALESCE(MAX(parent.{{ of.column }}), 0) INTO v_column
    FROM {{ of.table }} AS parent WHERE {{ record }} FOR UPDATE;
  IF p_step = 'compact' THEN
    CALL {{ sql.routine(R::Move) }}({{ sql.key("{p}", ", ") }}, FALSE, v_left, v_rejected);
  ELSE
    -- Slots that are new since the SELECT: slot 0 is overwritten (counted before the reset), slots > 0 count after it.
    INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
    VALUES ({{ sql.key("{p}", ", ") }}, 0, COALESCE(p_value, 0) - v_column - v_others)
    ON DUPLICATE KEY UPDATE `count` = COALESCE(p_value, 0) - v_column - v_others;
  END IF;
  IF v_own THEN COMMIT AND NO CHAIN NO RELEASE; END IF;
  IF v_rejected IS NOT NULL THEN
    CALL {{ sql.routine(R::Fail) }}(30013, CONCAT(
      {% filter sql_string %}{{ sql.routine(R::Compact).name() }}: {{ of }} rejects the counts of {% endfilter %},
      LEFT(CONCAT_WS(', ', {{ sql.key("{p text}", ", ") }}), 99), ': ', v_rejected));
  END IF;
END
