BEGIN
  {{ table.slot_of_node()|indent(2) }}
  {{ table.upsert(amount, "v_slot")|indent(2) }}
END;
