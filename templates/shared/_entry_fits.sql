({{ table.key.json_fits() }}{{ table.key.json_amount_fits() }}
{{- table.key.json_exact() }}
   AND CAST(json_amount AS CHAR) = CAST(p_amount AS CHAR)
   AND more = 0) IS TRUE
