IF {{ slots }} < 1 OR {{ slots }} > {{ MAX_SLOTS }} THEN
  {{ r.signal(E::SlotsOutOfRange)|indent(2) }}
END IF;
{{ r.check_nodes(slots) }}
