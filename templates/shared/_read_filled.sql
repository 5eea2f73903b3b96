{{ table.set_statement("group_concat_max_len=4294967295")|before(0) }}SELECT JSON_ARRAYAGG({{ table.slot() }})
  INTO v_filled
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND ({{ table.count() }} <> 0 OR {{ table.slot() }} = {{ table.first_slot() }});
