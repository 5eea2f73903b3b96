{{ sql.create("PROCEDURE") }}(IN p_routine VARCHAR(64) CHARACTER SET utf8mb4,
  IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_amount BIGINT)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Called if the UPDATE of the slot of the connection changed no row: a resize has removed that slot,
  p_amount is 0, or the counter is unknown.
{%- if o.cluster %} Takes the lowest slot of this node, or slot 1, which every counter has.
{%- else %} Every counter has slot 1.
{%- endif %}'
BEGIN
  CALL {{ sql.routine(R::MustExist) }}(p_routine, p_counter_name);
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  UPDATE {{ o.table }}
     SET counter = counter + p_amount
   WHERE counter_name = p_counter_name{% if o.cluster %}
     AND counter_id IN (1, 1 + MOD(@@GLOBAL.auto_increment_offset - 1, @@GLOBAL.auto_increment_increment))
   ORDER BY counter_id DESC
   LIMIT 1;{% else %}
     AND counter_id = 1;{% endif %}
  IF ROW_COUNT() = 0 AND p_amount <> 0 THEN
{%- if o.mariadb() %}
    -- Outside of a transaction, the lock has ended: deleted since. Or KILL QUERY has hidden its error (MariaDB 11.8).
{%- else %}
    -- Outside of a transaction, the lock has ended: deleted since then (30003), or deleted and created again (30021).
{%- endif %}
    CALL {{ sql.routine(R::MustExist) }}(p_routine, p_counter_name);
    CALL {{ sql.routine(R::Fail) }}(30021, CONCAT(p_routine, ': not counted,
{%- if o.mariadb() %} interrupted or{% endif %} deleted and created again'));
  END IF;
END
