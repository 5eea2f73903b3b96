{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Moves all counts of a record to slot 0 and deletes the other slots. The total does not change, and concurrent changes are not
  lost. Compact a record that is no longer hot, to free space and to read fewer rows.
  A compaction waits for transactions that have changed the record.
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}
  1264   the total exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  DECLARE v_last BIGINT;

  {{ r.check_key()|indent(2) }}
  {{ table.over_snapshot()|before(2) }}SELECT MAX(slot)
    INTO v_last
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  IF v_last > 0 THEN
    CALL {{ r.sibling(R::First) }}({{ table.key.arguments() }});
    {{ table.fold_record()|indent(4) }}
    -- Only slots whose count is 0: another connection may have incremented one since.
    {{ table.delete_empty()|indent(4) }}
  END IF;
END
