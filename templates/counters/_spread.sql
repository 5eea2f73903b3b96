(
  -- The slots share what is left evenly. Retired slots get 0.
  SELECT slot,
         IF(slot > 0, (total - p_amount) DIV slots + IF(number <= MOD(total - p_amount, slots), 1, 0), 0) AS amount
    FROM (
      SELECT slot,
             SUM(amount) OVER () AS total,
             SUM(IF(slot > 0, 1, 0)) OVER () AS slots,
             ROW_NUMBER() OVER (ORDER BY IF(slot > 0, 0, 1), slot) AS number
        FROM {{ slots|indent(8) }}
    ) AS summed
   WHERE total >= p_amount
) AS spread
