{%- let record = sql.key("{} = {p}", " AND ") -%}
{{ sql.create("PROCEDURE") }}(IN p_step VARCHAR(7) CHARACTER SET utf8mb4,
  {{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_value BIGINT)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Resets or compacts a record, in transactions of its own, unless one is open.'
BEGIN
  DECLARE v_own BOOLEAN DEFAULT FALSE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      IF v_own THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
      RESIGNAL;
    END;

  CALL {{ sql.routine(R::Begin) }}(v_own);
  IF p_step = 'reset' THEN
    -- One statement locks all slots in their order, or inserts slot 0. A second one could deadlock at a new slot.
    INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
    SELECT {{ sql.key("{p}", ", ") }}, slot, value
      FROM (
        SELECT COALESCE(slot, 0) AS slot, IF(slot > MIN(slot) OVER (), 0, COALESCE(p_value, 0)) AS value
          FROM (SELECT 1) AS one
          LEFT JOIN (SELECT slot FROM {{ o.table }} WHERE {{ record }} FOR UPDATE) AS locked ON TRUE
      ) AS slots
    ON DUPLICATE KEY UPDATE `count` = slots.value;
  ELSE
    INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
    SELECT {{ sql.key("{p}", ", ") }}, slot, moved
      FROM (
        SELECT slot, IF(slot = MIN(slot) OVER (), SUM(`count`) OVER (), 0) AS moved
          FROM {{ o.table }} WHERE {{ record }} FOR UPDATE) AS locked
    ON DUPLICATE KEY UPDATE `count` = locked.moved;
    IF v_own THEN COMMIT AND NO CHAIN NO RELEASE; CALL {{ sql.routine(R::Begin) }}(v_own); END IF;
    DELETE FROM {{ o.table }} WHERE {{ record }} AND `count` = 0;
  END IF;
  IF v_own THEN COMMIT AND NO CHAIN NO RELEASE; END IF;
END
