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
  DECLARE v_total BIGINT;
  -- The sum is a DECIMAL and may be beyond the variable. A DECIMAL variable and a test would cost each read more.
  DECLARE EXIT HANDLER FOR 1264
    {{ c.signal(E::TotalOutOfRange)|indent(4) }}

  SELECT SUM({{ c.count_column() }})
    INTO v_total
    FROM {{ c.table() }}
   WHERE {{ c.key_is("")|indent(2) }};
  IF v_total IS NULL{{ c.or_key_cut() }} THEN
{%- if c.keyed() %}
    -- Why there are none is asked only now: a read that finds rows makes one test.
    {{ c.check_key()|indent(4) }}
    RETURN 0;
{%- else %}
    {{ c.refuse_key()|indent(4) }}
{%- endif %}
  END IF;
  RETURN v_total;
END
