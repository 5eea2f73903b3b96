CREATE PROCEDURE {{ r.name }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Removes the record with all its slots, in one statement. Where none is there, nothing happens.

Parameters
{{ r.manual_key() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN

  {{ r.check_key()|indent(2) }}
  {{ table.over_snapshot()|indent(2) }}
  DELETE FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
END
