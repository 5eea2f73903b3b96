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
{%- if package.options.bounded %}
  To take amounts from several records, call {{ r.sibling(R::Take).typed() }} for each in one transaction.
{%- endif %}

Parameters
  p_amounts LONGTEXT: a JSON array of at most {{ ENTRIES_MAX }} entries. Each entry is an array: the columns of the key, in their
    order, and an integer{% if package.options.bounded %} of at least 0{% endif %}. A record can have several entries. Integers are numbers, all other columns are
    strings, binary ones of hexadecimal digits.

Errors
{{ r.manual_errors() }}
  1264, 1690  the new count of a slot exceeds the range of BIGINT (errors of the server)

Example
  CALL {{ r.name.typed() }}('{{ r.example_entries() }}');
{%- endfilter %}
BEGIN
  DECLARE v_entry{% if package.options.bounded %}, v_negative{% endif %} BIGINT;

  {{ r.check_array()|indent(2) }}
  -- The text of a number is compared, because MariaDB reads 15e-1 as 2, and MySQL a number beyond BIGINT as a negative one.
  SELECT MIN(IF({{ table.entry_fits()|indent(9) }}, NULL, entry))
{%- if package.options.bounded %},
         MIN(IF(p_amount < 0, entry, NULL))
{%- endif %}
    INTO v_entry{% if package.options.bounded %}, v_negative{% endif %}
    FROM {{ table.entries("p_amounts", "check")|indent(4) }};
  IF v_entry IS NOT NULL THEN
    {{ r.signal(E::EntryMisfit)|indent(4) }}
  END IF;
{%- if package.options.bounded %}
  IF v_negative IS NOT NULL THEN
    SET v_entry = v_negative;
    {{ r.signal(E::EntryNegative)|indent(4) }}
  END IF;
{%- endif %}
  {{ table.upsert_many("p_amounts", table.slot_of_call())|indent(2) }}
END
