(
  WITH digits (digit) AS (
    SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
  )
  SELECT 1 + units.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS number
    FROM digits AS units
   CROSS JOIN digits AS tens
   CROSS JOIN digits AS hundreds
   CROSS JOIN digits AS thousands
   WHERE tens.digit <= ({{ limit }} - 1) DIV 10
     AND hundreds.digit <= ({{ limit }} - 1) DIV 100
     AND thousands.digit <= ({{ limit }} - 1) DIV 1000
)
