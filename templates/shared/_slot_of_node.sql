DECLARE v_slot BIGINT
  DEFAULT {{ table.counted_from() }}MOD(
    CONNECTION_ID() * @@auto_increment_increment + @@auto_increment_offset - 1,
    IF({{ table.slots() }} < @@auto_increment_increment,
       {{ table.slots() }},
       {{ table.slots() }} - MOD({{ table.slots() }}, @@auto_increment_increment)));
