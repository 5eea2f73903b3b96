{{ table.last_slot("v_slots", "") }}
-- CHAR_LENGTH() rejects a name that a server without strict mode has truncated.
{{ table.update_slot(change, table.slot_of_call(), "") }}
IF ROW_COUNT() = 0 THEN
  CALL {{ r.sibling(R::AddElsewhere) }}({{ r.speaker_text() }}, p_counter_name, {{ amount }}, v_slots);
END IF;
