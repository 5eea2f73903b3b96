SELECT MIN(entry)
  INTO v_entry
  FROM {{ table.entries("p_amounts", "check")|indent(2) }}
 WHERE NOT ({{ table.entry_fits() }});
IF v_entry IS NOT NULL THEN
  {{ r.signal(E::EntryMisfit)|indent(2) }}
END IF;
