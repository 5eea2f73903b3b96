CREATE PROCEDURE {{ r.name }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_value BIGINT,
  IN p_restart BOOLEAN
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of the counter, in one statement: the value goes into slot 1, all others become 0.
  What others count at the same time comes wholly before it, and is overwritten, or wholly after it.

Parameters
{{ r.manual_key() }}
{{ r.manual("p_value") }}the new total; NULL means 0
{{ r.manual("p_restart") }}TRUE also sets start_date to now, on all slots; FALSE or NULL keeps it

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads', 0, TRUE);
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;

  {{ r.check_name()|indent(2) }}
  {{ table.over_snapshot()|indent(2) }}
  UPDATE {{ table.name }}
     SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
         start_date = IF(p_restart, NOW(), start_date)
   WHERE counter_name = p_counter_name;
{% include "counters/_unknown_if_no_row.sql" %}
END
