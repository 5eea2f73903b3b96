{{ c.over_snapshot() }}
UPDATE {{ c.table() }}
   SET {{ c.count_column() }} = {{ c.count_column() }} + {{ amount }}
 WHERE {{ c.key_is("") }}
   AND {{ c.slot_column() }} = {{ slot }}
   AND CHAR_LENGTH(p_counter_name) <= {{ NAME_MAX }};
