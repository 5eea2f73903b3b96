CREATE PROCEDURE {{ c.name }}(
{{ c.key_parameters("IN ") }},
  IN p_value BIGINT
{%- if !c.keyed() %},
  IN p_restart BOOLEAN
{%- endif %}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of the {{ c.subject() }}, in one statement: the value goes into slot {{ c.first_slot() }}, all others become 0.
  What others count at the same time comes wholly before it, and is overwritten, or wholly after it.

Parameters
{{ c.key_manual() }}
{{ c.manual("p_value") }}the new total; NULL means 0
{%- if !c.keyed() %}
{{ c.manual("p_restart") }}TRUE also sets start_date to now, on all slots; FALSE or NULL keeps it
{%- endif %}

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}({{ c.key_example() }}, 0{% if !c.keyed() %}, TRUE{% endif %});
{%- endfilter %}
BEGIN
{%- if !c.keyed() %}
  DECLARE v_rows BIGINT;
{%- endif %}

  {{ c.check_key()|indent(2) }}
  {{ c.over_snapshot()|indent(2) }}
{%- if c.keyed() %}
  INSERT INTO {{ c.table() }} ({{ c.key_columns("") }}, slot, {{ c.count_column() }})
  SELECT {{ c.key_arguments() }}, 0, COALESCE(p_value, 0)
   UNION ALL
  (SELECT {{ c.key_columns("") }}, slot, 0
     FROM {{ c.table() }}
    WHERE {{ c.key_is("")|indent(3) }}
      AND slot > 0
      FOR UPDATE)
  ON DUPLICATE KEY UPDATE {{ c.count_column() }} = IF({{ c.table() }}.slot = 0, COALESCE(p_value, 0), 0);
{%- else %}
  UPDATE {{ c.table() }}
     SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
         start_date = IF(p_restart, NOW(), start_date)
   WHERE {{ c.key_is("")|indent(2) }};
{% include "_unknown_if_no_row.sql" %}
{%- endif %}
END
