CALL {{ r.sibling(R::First) }}({{ table.key.arguments() }});
{{ table.delete_slots() }}
-- Slot 0 was there: KILL QUERY can end a DELETE without an error, as on MariaDB 11.8.
IF ROW_COUNT() = 0 THEN
  CALL {{ r.sibling(R::DeleteKilled) }}({{ table.key.arguments() }});
END IF;
