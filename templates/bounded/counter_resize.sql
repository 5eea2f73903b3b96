{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_slots BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Changes the number of slots of a counter while other connections use it. The total is right after each statement. A call that
  was interrupted has removed a part of the slots: call it again.
  Under autocommit, the call waits for transactions that hold one of the slots. Inside a transaction, it keeps all its locks.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_slots BIGINT: the new number of slots, 1 to {{ MAX_SLOTS }}

Errors
{{ r.manual_errors() }}
  1264   the counts of two slots exceed the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('seats', 50);
{%- endfilter %}
BEGIN
  DECLARE v_last BIGINT;
  DECLARE v_slots BIGINT;

  {{ r.check()|indent(2) }}
  CALL {{ r.sibling(R::CheckSlots) }}({{ r.speaker_text() }}, p_slots);
  CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
  REPEAT
    -- A locking read: in a transaction, the snapshot can have other slots. Another resize can have added some meanwhile.
    {{ table.over_snapshot()|before(4) }}SELECT COALESCE(MAX(counter_id), 1)
      INTO v_last
      FROM (
        SELECT counter_id
          FROM {{ table.name }}
         WHERE {{ table.key.equals("")|indent(6) }}
         ORDER BY counter_id DESC
         LIMIT 1
          LOCK IN SHARE MODE
      ) AS locked;
    SET v_slots = v_last;
    WHILE v_last > p_slots DO
      CALL {{ r.sibling(R::RemoveSlot) }}(p_counter_name, v_last);
      SET v_last = v_last - 1;
    END WHILE;
  UNTIL v_slots <= p_slots END REPEAT;

  {{ table.over_snapshot()|before(2) }}SELECT COUNT(*)
    INTO v_slots
    FROM {{ table.name }}
   WHERE {{ table.key.equals("") }}
     AND counter_id BETWEEN 1 AND p_slots;
  IF v_slots < p_slots OR v_last < p_slots THEN
    {{ table.grow("p_slots")|indent(4) }}
  END IF;
END
