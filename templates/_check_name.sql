  IF p_counter_name IS NULL OR RTRIM(p_counter_name) = '' THEN
    {{ c.signal(E::NameEmpty)|indent(4) }}
  END IF;
  IF CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
    {{ c.signal(E::NameTooLong)|indent(4) }}
  END IF;
