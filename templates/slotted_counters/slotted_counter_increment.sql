{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of a record. The increment is part of the transaction of the caller.
  {% include "shared/_slot_selection.sql" %}

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}
  1690   the count of the slot exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  -- The primary key is the only unique key, so that the upsert locks one record and no gap.
  IF {{ table.key.valid()|indent(2) }} THEN
    {{ table.upsert("1", table.slot_of_call())|indent(4) }}
  ELSE
    {{ r.check()|indent(4) }}
  END IF;
END
