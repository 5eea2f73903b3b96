({{ table.key.json_fits_all() }}JSON_TYPE(json_amount) IN ('INTEGER', 'UNSIGNED INTEGER') AND CAST(json_amount AS CHAR) = CAST(p_amount AS CHAR)
   AND more = 0) IS TRUE
