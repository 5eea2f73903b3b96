{{ sql.create("PROCEDURE") }}(IN p_routine VARCHAR(64) CHARACTER SET utf8mb4,
  IN p_counter_name {{ sql.key("{type}", "") }})
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Fails if there is no such counter. FOR UPDATE, because a SELECT can read an old snapshot.'
BEGIN
  DECLARE v_rows BIGINT;

  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT COUNT(*) INTO v_rows FROM {{ o.table }} WHERE counter_name = p_counter_name AND counter_id = 1 FOR UPDATE;
  IF v_rows = 0 THEN
    CALL {{ sql.routine(R::Fail) }}(30003, CONCAT(p_routine, ': unknown counter ', QUOTE(p_counter_name)));
  END IF;
END
