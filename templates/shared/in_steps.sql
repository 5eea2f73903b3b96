{{ r.create_as("PROCEDURE") }}(
  OUT p_steps BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Whether maintenance changes one slot in each statement: on a node of a cluster, outside a transaction. The other nodes
  change their slots all the time, and a change of all slots would conflict with theirs (1213, 3101, 1180).
{%- endfilter %}
BEGIN
  -- Outside a transaction, SAVEPOINT creates nothing, and RELEASE fails.
  DECLARE CONTINUE HANDLER FOR 1305
    SET p_steps = TRUE;

  SET p_steps = FALSE;
  IF {{ table.nodes() }} > 1 THEN
    SAVEPOINT slotted_steps;
    RELEASE SAVEPOINT slotted_steps;
  END IF;
END
