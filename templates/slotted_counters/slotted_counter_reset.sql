{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of a record in one statement: slot 0 gets the value, all other slots get 0.
  A concurrent increment takes effect either before the reset, which overwrites it, or after the reset.
  On a node of a cluster and outside a transaction, a statement resets each slot, slot 0 at last, and is repeated if it conflicts
  with another node. Until the call ends, a read can return less than the old and the new total.

Parameters
{{ table.key.manual() }}
  p_value BIGINT: the new total; NULL means 0

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 0);
{%- endfilter %}
BEGIN
{%- include "shared/_step_variables.sql" %}

  {{ r.check_key()|indent(2) }}
  {{ table.find_steps()|indent(2) }}
  IF v_steps THEN
    {{ table.in_steps(table.reset_slot_of_record())|indent(4) }}
  ELSE
    {{ table.over_snapshot()|before(4) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
    SELECT {{ table.key.arguments() }}, 0, COALESCE(p_value, 0)
     UNION ALL
    (SELECT {{ table.key.list() }}, slot, 0
       FROM {{ table.name }}
      WHERE {{ table.key.equals("")|indent(5) }}
        AND slot > 0
      -- Reading upwards would lock the next record, too. Without LIMIT, the server ignores ORDER BY here.
      ORDER BY slot DESC
      LIMIT {{ MAX_SLOTS }}
        FOR UPDATE)
    ON DUPLICATE KEY UPDATE `count` = IF({{ table.name }}.slot = 0, COALESCE(p_value, 0), 0);
  END IF;
END
