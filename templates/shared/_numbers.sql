SELECT 1 + units.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS number
  FROM {{ table.digits("units") }}
 CROSS JOIN {{ table.digits("tens") }}
 CROSS JOIN {{ table.digits("hundreds") }}
 CROSS JOIN {{ table.digits("thousands") }}
 WHERE tens.digit <= ({{ limit }} - 1) DIV 10
   AND hundreds.digit <= ({{ limit }} - 1) DIV 100
   AND thousands.digit <= ({{ limit }} - 1) DIV 1000
