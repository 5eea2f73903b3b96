IF IF(JSON_VALID(p_amounts), JSON_TYPE(p_amounts) = 'ARRAY' AND JSON_LENGTH(p_amounts) <= {{ ENTRIES_MAX }}, FALSE) IS NOT TRUE THEN
  {{ r.signal(E::NotArray)|indent(2) }}
END IF;
