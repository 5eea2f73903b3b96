{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Gives a record its first count, such as a quota. Fails if the record has rows. Of several calls at once for one record, exactly
  one succeeds: the first request of a day can call it, and none takes "not set" for "used up".
  A record needs no setup: the first increment or addition inserts it.

Parameters
{{ table.key.manual() }}
  p_value BIGINT: the initial total, at least 0; NULL means 0

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 100);
{%- endfilter %}
BEGIN
  DECLARE v_last BIGINT;
  -- Another session has created slot 0 between the SELECT and the INSERT. Other errors reach the caller.
  DECLARE EXIT HANDLER FOR 1062
    {{ r.signal(E::CounterExists)|indent(4) }}

  {{ r.check()|indent(2) }}
  IF p_value < 0 THEN
    {{ r.signal(E::ValueNegative)|indent(4) }}
  END IF;
  -- Query the record first: an INSERT that fails holds a lock on slot 0 until the caller commits.
  {{ table.over_snapshot()|before(2) }}SELECT MAX(slot)
    INTO v_last
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  IF v_last IS NOT NULL THEN
    {{ r.signal(E::CounterExists)|indent(4) }}
  END IF;
  {{ table.over_snapshot()|before(2) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
  VALUES ({{ table.key.arguments() }}, 0, COALESCE(p_value, 0));
END
