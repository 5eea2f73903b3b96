{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds amounts to many {{ table.subject() }}s in one statement: all of them or, after an error, none. The change is part of the
  transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call locks one slot of each {{ table.subject() }}, in the order of the key. To take amounts from several {{ table.subject() }}s, call
  {{ r.sibling(R::Take).typed() }} for each in one transaction.

Parameters
  p_amounts LONGTEXT: a JSON array of at most {{ ENTRIES_MAX }} entries. Each entry is an array: the columns of the key, in their
    order, and an integer of at least 0. A record can have several entries. Integers are numbers, all other columns are
    strings, binary ones of hexadecimal digits.

Errors
{{ r.manual_errors() }}
  1264, 1690  the new count of a slot exceeds the range of BIGINT (errors of the server)

Example
  CALL {{ r.name.typed() }}('{{ r.example_entries() }}');
{%- endfilter %}
BEGIN
  DECLARE v_invalid BIGINT;
  DECLARE v_entry BIGINT;

  {{ r.check_array()|indent(2) }}

  -- The text of a number is compared, because MariaDB reads 15e-1 as 2, and MySQL a number beyond BIGINT as a negative one.
  SELECT MIN(IF({{ table.entry_fits()|indent(9) }}, NULL, entry)),
         MIN(IF(p_amount < 0, entry, NULL))
    INTO v_invalid, v_entry
    FROM {{ table.entries("p_amounts", "check")|indent(4) }};
  IF v_invalid IS NOT NULL THEN
    SET v_entry = v_invalid;
    {{ r.signal(E::EntryMisfit)|indent(4) }}
  END IF;
  IF v_entry IS NOT NULL THEN
    {{ r.signal(E::EntryNegative)|indent(4) }}
  END IF;

  {{ table.upsert_many("p_amounts", table.slot_of_call(), "")|indent(2) }}
END
