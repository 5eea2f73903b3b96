IF COALESCE(JSON_VALID(p_amounts), 0) = 0 THEN
  {{ r.signal(E::NotArray)|indent(2) }}
END IF;
IF JSON_TYPE(p_amounts) <> 'ARRAY' OR JSON_LENGTH(p_amounts) > {{ ENTRIES_MAX }} THEN
  {{ r.signal(E::NotArray)|indent(2) }}
END IF;
