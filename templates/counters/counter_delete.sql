{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes a counter with all its slots in one statement.
{%- if !table.bounded() %}
  On a node of a cluster and outside a transaction, a statement deletes each slot, and is repeated after a conflict.
{%- else if package.options.bounded %}
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.
{%- endif %}

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('{{ r.counter() }}');
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT DEFAULT 0;
{%- if !table.bounded() %}
  DECLARE v_steps BOOLEAN;
{%- endif %}

  {{ r.check()|indent(2) }}
{%- if !table.bounded() %}
  CALL {{ r.sibling(R::InSteps) }}(v_steps);
  IF v_steps THEN
    CALL {{ r.sibling(R::Steps) }}({{ r.speaker_text() }}, p_counter_name, NULL, NULL);
    SET v_rows = 1;
  END IF;
{%- endif %}
  WHILE v_rows = 0 DO
    -- The subquery locks slot 1, for which a resize waits, then the others in the order of the other routines.
    {{ table.delete_slots()|indent(4) }}
    SET v_rows = ROW_COUNT();
    IF v_rows = 0 THEN
      -- If slot 1 is there, KILL QUERY has ended the DELETE without an error, as on MariaDB 11.8.
      CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
    END IF;
  END WHILE;
END
