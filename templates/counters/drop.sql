{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'The same as {{ sql.routine(R::Delete).name() }}.'
CALL {{ sql.routine(R::Delete) }}(p_counter_name)
