CREATE PROCEDURE {{ c.name }}(
  IN p_counter_name {{ c.name_type(NAME_PARAMETER) }},
  IN p_value BIGINT,
  IN p_restart BOOLEAN
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of the counter, in one statement: the value goes into slot 1, all others become 0.
  What others count at the same time comes wholly before it, and is overwritten, or wholly after it.

Parameters
  p_counter_name  the name of the counter
  p_value         the new total; NULL means 0
  p_restart       TRUE also sets start_date to now, on all slots; FALSE or NULL keeps it

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}('downloads', 0, TRUE);
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;
  DECLARE v_message VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;

{% include "_check_name.sql" %}
  {{ c.over_snapshot()|indent(2) }}
  UPDATE {{ c.table() }}
     SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
         start_date = IF(p_restart, NOW(), start_date)
   WHERE counter_name = p_counter_name;
{% include "_unknown_if_no_row.sql" %}
END
