CREATE FUNCTION {{ r.name }}({{ table.key.parameters("") }}
)
  RETURNS BIGINT
  NOT DETERMINISTIC
  READS SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  The total of the record: the sum of its slots. 0 where nothing was ever counted.
  Takes no lock. In REPEATABLE READ it reads the snapshot of the transaction, but what that
  transaction has counted itself comes on top.

Parameters
{{ r.manual_key() }}

Returns
  BIGINT, the total

Errors
{{ r.manual_errors() }}

Example
  SELECT {{ r.name.typed() }}({{ r.example() }}) AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;
  -- The sum is a DECIMAL and may be beyond the variable. A DECIMAL variable and a test would cost each read more.
  DECLARE EXIT HANDLER FOR 1264
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}

  SELECT SUM(`count`)
    INTO v_total
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  IF v_total IS NULL{{ table.key.or_truncated() }} THEN
    -- Why there are none is asked only now: a read that finds rows makes one test.
    {{ r.check_key()|indent(4) }}
    RETURN 0;
  END IF;
  RETURN v_total;
END
