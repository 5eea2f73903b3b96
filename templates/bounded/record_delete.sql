{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes all slots of a record in one statement. If the record has no rows, the call has no effect.
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  {{ r.check_key()|indent(2) }}
  CALL {{ r.sibling(R::First) }}({{ table.key.arguments() }});
  {{ table.delete_slots()|indent(2) }}
  -- Slot 0 was there: on MariaDB 11.8, KILL QUERY can end a DELETE without an error.
  IF ROW_COUNT() = 0 THEN
    CALL {{ r.sibling(R::DeleteKilled) }}({{ table.key.arguments() }});
  END IF;
END
