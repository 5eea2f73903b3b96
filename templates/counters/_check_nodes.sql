IF {{ slots }} < {{ table.nodes() }} THEN
  {{ r.signal(E::SlotsOfNodes)|indent(2) }}
END IF;
