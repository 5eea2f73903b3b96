{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET counter = counter + {{ amount }}
 WHERE counter_name = p_counter_name
   AND counter_id = {{ slot }}
   AND CHAR_LENGTH(p_counter_name) <= {{ NAME_MAX }};
