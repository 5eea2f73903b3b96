SELECT 1 + units.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS number
  FROM {{ c.digits("units") }}
 CROSS JOIN {{ c.digits("tens") }}
 CROSS JOIN {{ c.digits("hundreds") }}
 CROSS JOIN {{ c.digits("thousands") }}
 WHERE tens.digit <= ({{ limit }} - 1) DIV 10
   AND hundreds.digit <= ({{ limit }} - 1) DIV 100
   AND thousands.digit <= ({{ limit }} - 1) DIV 1000
