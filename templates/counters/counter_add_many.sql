{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds amounts to many counters in one statement: all of them or, after an error, none. The change is part of the
  transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call locks one slot of each counter, in the order of the names. Two calls with the same counters cannot deadlock.

Parameters
  p_amounts LONGTEXT: a JSON array of at most {{ ENTRIES_MAX }} entries. Each entry is an array: the name of a counter and an integer.
    A counter can have several entries.

Errors
{{ r.manual_errors() }}
  1264   the new count of a slot exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('[["downloads", 3], ["signups", -1]]');
{%- endfilter %}
BEGIN
  DECLARE v_entry BIGINT;
  DECLARE v_counters BIGINT;
  DECLARE v_amounts LONGTEXT CHARACTER SET utf8mb4;
  DECLARE v_valid BOOLEAN;
  DECLARE v_tries INT DEFAULT 0;

  {{ r.check_array()|indent(2) }}

  -- A subquery of the UPDATE would lock the last slot of each counter.
  {{ table.many_slots("p_amounts", table.slot_of_found().as_str(), "v_counters, v_amounts, v_entry, v_valid", "check")|indent(2) }}
  IF NOT v_valid THEN
    {{ r.check_entries()|indent(4) }}
  END IF;
  IF v_counters > 0 THEN
    -- If a resize has retired a slot, the first UPDATE changes no row. A counter with at least as many slots as nodes
    -- has the lowest slot of this node, and every counter has slot 1.
    REPEAT
      SET v_tries = v_tries + 1;
      {{ table.update_many("v_amounts", table.slot_of_try().as_str(), "v_counters")|indent(6) }}
    UNTIL ROW_COUNT() > 0 OR v_tries = 3 END REPEAT;
    IF ROW_COUNT() = 0 THEN
      IF v_entry IS NULL THEN
        -- Another session has deleted the counter after the snapshot of this transaction, which only a locking read sees.
        {{ table.missing_counter("p_amounts")|indent(8) }}
      END IF;
      IF v_entry IS NULL THEN
        -- On MariaDB 11.8, KILL QUERY can end an UPDATE without an error.
        SIGNAL SQLSTATE '70100'
           SET MYSQL_ERRNO = 1317,
               MESSAGE_TEXT = 'Query execution was interrupted';
      END IF;
      BEGIN
        DECLARE v_counter_name {{ table.varchar(NAME_PARAMETER) }}
          DEFAULT JSON_UNQUOTE(JSON_EXTRACT(p_amounts, CONCAT('$[', v_entry - 1, '][0]')));
        {{ r.signal_named(E::UnknownCounter, "v_counter_name")|indent(8) }}
      END;
    END IF;
  END IF;
END
