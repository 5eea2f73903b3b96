{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds all amounts to their counters or, after an error, none. The change is part of the transaction of the caller.
  The call locks one slot of each counter, in the order of the names. Two calls with the same counters cannot deadlock.
{%- if package.options.bounded %}
  To take amounts from several counters, call {{ r.sibling(R::Take).typed() }} for each in one transaction.
{%- endif %}

Parameters
  p_amounts LONGTEXT: a JSON array of at most {{ ENTRIES_MAX }} entries. Each entry is an array: the name of a counter and an
    integer{% if package.options.bounded %} of at least 0{% endif %}. A counter can have several entries.

Errors
{{ r.manual_errors() }}
  1264, 1690  the new count of a slot exceeds the range of BIGINT (errors of the server)

Example
  CALL {{ r.name.typed() }}('[["downloads", 3], ["signups", {% if !package.options.bounded %}-{% endif %}1]]');
{%- endfilter %}
BEGIN
  DECLARE v_counters, v_entry{% if package.options.bounded %}, v_negative{% endif %} BIGINT;
  DECLARE v_amounts LONGTEXT CHARACTER SET utf8mb4;
  DECLARE v_unknown BOOLEAN;
  DECLARE v_rows, v_tries BIGINT DEFAULT 0;

  {{ r.check_array()|indent(2) }}

  -- The amount and the slot of each counter, again as JSON: a subquery of the INSERT would lock the last slot of each counter.
  {{ table.many_slots("p_amounts", "v_counters, v_amounts, v_unknown, v_entry")|indent(2) }}
  IF v_entry IS NOT NULL THEN
    {{ r.signal(E::EntryMisfit)|indent(4) }}
  END IF;
{%- if package.options.bounded %}
  IF v_negative IS NOT NULL THEN
    SET v_entry = v_negative;
    {{ r.signal(E::EntryNegative)|indent(4) }}
  END IF;
{%- endif %}
  IF v_unknown THEN
    CALL {{ r.sibling(R::AddManyUnknown) }}(p_amounts);
  END IF;
  -- If a resize has removed a slot, the first statement changes no row. A resize keeps the lowest slot of each node.
  WHILE v_rows = 0 AND v_counters > 0 DO
    {# The slot of the connection, then the lowest one of its node. -#}
    {% let slot = "IF(v_tries = 0, entries.slot, 1 + MOD(entries.slot - 1, {}))"|format(table.nodes()) -%}
    {{ table.update_many("v_amounts", slot.as_str(), "v_counters")|indent(4) }}
    SET v_rows = ROW_COUNT(),
        v_tries = v_tries + 1;
    IF v_rows = 0 AND v_tries > 1 THEN
      CALL {{ r.sibling(R::AddManyUnknown) }}(p_amounts);
      -- Another session has created a counter since, or KILL QUERY has ended the statement without an error (MariaDB 11.8).
      IF v_tries > 4 THEN
        CALL {{ r.sibling(R::Fail) }}(1317, NULL);
      END IF;
    END IF;
  END WHILE;
END
