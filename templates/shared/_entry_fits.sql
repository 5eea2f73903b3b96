({{ table.key.json_fits() }}{{ table.key.json_amount_fits() }}
   AND more = 0) IS TRUE
