{{ r.create_as("FUNCTION") }}(
  p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  RETURNS BIGINT
  NOT DETERMINISTIC
  READS SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Returns the total of a counter, which is the sum of its slots. An unknown counter is an error.
  Locks no row. In REPEATABLE READ, the function reads the snapshot of the transaction and its own changes.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Returns
  BIGINT: the total

Errors
{{ r.manual_errors() }}

Example
  SELECT {{ r.name.typed() }}('{{ r.counter() }}') AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;
  -- SUM() returns DECIMAL, which may exceed the range of the variable. A handler is cheaper than a comparison.
  DECLARE EXIT HANDLER FOR 1264
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}

  {{ table.over_snapshot()|before(2) }}SELECT SUM(counter)
    INTO v_total
    FROM {{ table.name }}
   WHERE counter_name = p_counter_name;
  IF v_total IS NULL OR CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
    -- In the normal case, the name needs no validation.
    {{ r.check()|indent(4) }}
    {{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;
  RETURN v_total;
END
