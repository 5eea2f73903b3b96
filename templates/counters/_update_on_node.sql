BEGIN
  {{ table.slot_of_node()|indent(2) }}
  {{ table.update_slot(change, "v_slot", "")|indent(2) }}
END;
