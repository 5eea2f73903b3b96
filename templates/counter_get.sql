CREATE FUNCTION {{ c.name }}(
{{ c.key_parameters("") }}
)
  RETURNS BIGINT
  NOT DETERMINISTIC
  READS SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  The total of the {{ c.subject() }}: the sum of its slots. {% if c.keyed() %}0 where nothing was ever counted.{% else %}An unknown counter is an error, never 0.{% endif %}
  Takes no lock. In REPEATABLE READ it reads the snapshot of the transaction, but what that
  transaction has counted itself comes on top.

Parameters
{{ c.key_manual() }}

Returns
  BIGINT, the total

Errors
{{ c.errors() }}

Example
  SELECT {{ c.name.typed() }}({{ c.key_example() }}) AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total DECIMAL(65, 0);
{%- if !c.keyed() %}
  DECLARE v_message VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;
{%- endif %}

{%- include "_check_key.sql" %}
  SELECT {% if c.keyed() %}COALESCE(SUM({{ c.count_column() }}), 0){% else %}SUM({{ c.count_column() }}){% endif %}
    INTO v_total
    FROM {{ c.table() }}
   WHERE {{ c.key_is("")|indent(2) }};
  IF v_total BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    RETURN v_total;
  END IF;
{%- if !c.keyed() %}
  IF v_total IS NULL THEN
    {{ c.signal(E::UnknownCounter)|indent(4) }}
  END IF;
{%- endif %}
  {{ c.signal(E::TotalOutOfRange)|indent(2) }}
END
