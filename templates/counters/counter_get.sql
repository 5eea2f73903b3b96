CREATE FUNCTION {{ r.name }}(
  p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  RETURNS BIGINT
  NOT DETERMINISTIC
  READS SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  The total of the counter: the sum of its slots. An unknown counter is an error, never 0.
  Takes no lock. In REPEATABLE READ it reads the snapshot of the transaction, but what that
  transaction has counted itself comes on top.

Parameters
{{ r.manual_key() }}

Returns
  BIGINT, the total

Errors
{{ r.manual_errors() }}

Example
  SELECT {{ r.name.typed() }}('downloads') AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;
  -- The sum is a DECIMAL and may be beyond the variable. A DECIMAL variable and a test would cost each read more.
  DECLARE EXIT HANDLER FOR 1264
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}

  SELECT SUM(counter)
    INTO v_total
    FROM {{ table.name }}
   WHERE counter_name = p_counter_name;
  IF v_total IS NULL OR CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
    {{ r.unknown_counter()|indent(4) }}
  END IF;
  RETURN v_total;
END
