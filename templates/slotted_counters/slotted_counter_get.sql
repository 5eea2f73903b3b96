{{ r.create_as("FUNCTION") }}({{ table.key.parameters("") }}
)
  RETURNS BIGINT
  NOT DETERMINISTIC
  READS SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Returns the total of a record, which is the sum of its slots{% if table.rollup().is_some() %} and its column{% endif %}. The total of a record without rows is 0.
  Locks no row. In REPEATABLE READ, the function reads the snapshot of the transaction and the changes that the
  transaction itself has made.

Parameters
{{ table.key.manual() }}

Returns
  BIGINT: the total

Errors
{{ r.manual_errors() }}

Example
  SELECT {{ r.name.typed() }}({{ r.example() }}) AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;
  -- SUM() returns DECIMAL, which may exceed the range of the variable. A handler is cheaper than a comparison.
  DECLARE EXIT HANDLER FOR 1264
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}

  {{ table.over_snapshot()|before(2) }}SELECT {% if table.rollup().is_none() %}SUM(`count`){% else %}COALESCE(SUM(`count`), 0)
{%- if let Some(rollup) = table.rollup() %} + {{ rollup.column_of_arguments("")|indent(9) }}
{%- endif %}{% endif %}
    INTO v_total
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  IF v_total{% if table.rollup().is_none() %} IS NULL{% else %} = 0{% endif %}{{ table.key.or_unfit() }} THEN
    -- In the normal case, the key needs no validation.
    {{ r.check()|indent(4) }}
    RETURN 0;
  END IF;
  RETURN v_total;
END
