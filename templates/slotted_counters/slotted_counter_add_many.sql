{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds amounts to many records in one statement: all of them or, after an error, none. The change is part of the
  transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call locks one slot of each record, in the order of the key. Two calls with the same records cannot deadlock.

Parameters
  p_amounts LONGTEXT: a JSON array of at most {{ ENTRIES_MAX }} entries. Each entry is an array: the columns of the key, in their
    order, and the amount. A record can have several entries. Integers are numbers,
    all other columns are strings, binary ones of hexadecimal digits.

Errors
{{ r.manual_errors() }}
  1264   the sum of the amounts of a record exceeds the range of BIGINT (error of the server)
  1690   the count of a slot exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('{{ r.example_entries() }}');
{%- endfilter %}
BEGIN
  DECLARE v_entry BIGINT;
  DECLARE v_slot BIGINT;
  -- The statement inserts NULL for an entry that is not valid (1048), or a value that the column cannot store (the others). A
  -- check before the statement would read the array twice.
  DECLARE EXIT HANDLER FOR 1048, 1264, 1265, 1292, 1366, 1406
    BEGIN
      {{ r.check_entries()|indent(6) }}
      RESIGNAL;
    END;

  {{ r.check_array()|indent(2) }}
  SET v_slot = {{ table.slot_of_call()|indent(2) }};
  {{ table.upsert_many("p_amounts", "v_slot", "check")|indent(2) }}
END
