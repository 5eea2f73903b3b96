CREATE FUNCTION {{ c.name }}(
  p_counter_name {{ c.name_type(NAME_PARAMETER) }}
)
  RETURNS BIGINT
  NOT DETERMINISTIC
  READS SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  The total of the counter: the sum of its slots. An unknown counter is an error, never 0.
  Takes no lock. In REPEATABLE READ it reads the snapshot of the transaction, but what that
  transaction has counted itself comes on top.

Parameters
  p_counter_name  the name of the counter

Returns
  BIGINT, the total

Errors
{{ c.errors() }}

Example
  SELECT {{ c.name.typed() }}('downloads') AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_message VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;

{% include "_check_name.sql" %}
  SELECT SUM(counter)
    INTO v_total
    FROM {{ c.table() }}
   WHERE counter_name = p_counter_name;
  IF v_total IS NULL THEN
    {{ c.signal(E::UnknownCounter)|indent(4) }}
  END IF;
  IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    {{ c.signal(E::TotalOutOfRange)|indent(4) }}
  END IF;

  RETURN v_total;
END
