{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes a counter with all its slots in one statement.
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('seats');
{%- endfilter %}
BEGIN
  {{ r.check_name()|indent(2) }}
  -- The last part is what a resize that was interrupted has left.
  {{ table.delete_slots()|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
    -- Slot 1 is still there: on MariaDB 11.8, KILL QUERY can end a DELETE without an error.
    CALL {{ r.sibling(R::Fail) }}(1317, NULL);
  END IF;
END
