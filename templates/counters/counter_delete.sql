CREATE PROCEDURE {{ r.name }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Removes the counter with all its slots, in one statement. {{ r.sibling(R::Delete).typed() }} and {{ r.sibling(R::Drop).typed() }} are the same.

Parameters
{{ r.manual_key() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads');
{%- endfilter %}
BEGIN

  {{ r.check_name()|indent(2) }}
  {{ table.over_snapshot()|indent(2) }}
  DELETE FROM {{ table.name }}
   WHERE counter_name = p_counter_name;
  IF ROW_COUNT() = 0 THEN
    {{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;
END
