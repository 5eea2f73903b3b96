DECLARE v_slot BIGINT
  DEFAULT {{ table.node_slot(table.usable_slots(table.slots()))|indent(2) }};
