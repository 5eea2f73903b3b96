CREATE PROCEDURE {{ r.name }}({{ table.key.parameters("IN ") }},
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of the record, in one statement: the value goes into slot 0, all others become 0.
  What others count at the same time comes wholly before it, and is overwritten, or wholly after it.

Parameters
{{ r.manual_key() }}
{{ r.manual("p_value") }}the new total; NULL means 0

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 0);
{%- endfilter %}
BEGIN

  {{ r.check_key()|indent(2) }}
  {{ table.over_snapshot()|indent(2) }}
  INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
  SELECT {{ table.key.arguments() }}, 0, COALESCE(p_value, 0)
   UNION ALL
  (SELECT {{ table.key.list() }}, slot, 0
     FROM {{ table.name }}
    WHERE {{ table.key.equals("")|indent(3) }}
      AND slot > 0
      FOR UPDATE)
  ON DUPLICATE KEY UPDATE `count` = IF({{ table.name }}.slot = 0, COALESCE(p_value, 0), 0);
END
