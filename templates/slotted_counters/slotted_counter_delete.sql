{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes all slots of a record in one statement. If the record has no rows, the call has no effect.

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  {{ r.check_key()|indent(2) }}
  {{ table.delete_slots()|indent(2) }}
{%- if package.options.servers != Servers::Mysql %}
  IF ROW_COUNT() = 0 THEN
    {{ r.if_interrupted(table.key.equals("").as_str())|indent(4) }}
  END IF;
{%- endif %}
END
