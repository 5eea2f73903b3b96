CREATE PROCEDURE {{ c.name }}(
{{ c.key_parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Removes the {{ c.subject() }} with all its slots, in one statement. {{ c.delete_names() }}

Parameters
{{ c.key_manual() }}

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}({{ c.key_example() }});
{%- endfilter %}
BEGIN

  {{ c.check_key()|indent(2) }}
  {{ c.over_snapshot()|indent(2) }}
  DELETE FROM {{ c.table() }}
   WHERE {{ c.key_is("")|indent(2) }};
{%- if !c.keyed() %}
  IF ROW_COUNT() = 0 THEN
    {{ c.signal(E::UnknownCounter)|indent(4) }}
  END IF;
{%- endif %}
END
