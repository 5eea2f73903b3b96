{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of a record. The increment is part of the transaction of the caller: COMMIT and ROLLBACK apply to
  it.
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
{%- if package.options.random() %}
  DECLARE v_slot BIGINT;
{% endif %}
  {{ r.count_record("1", true)|indent(2) }}
END
