SELECT counter_name,
       MAX(description) AS description,
       MAX(start_date) AS start_date,
       COUNT(IF(counter_id > 0, 1, NULL)) AS slots,
       -- A total beyond the range of BIGINT is shown as the end of the range, with a warning. The function fails with error 30008.
       COALESCE(CAST(SUM(counter) AS SIGNED), 0) AS total,
       -- 1 during a resize, and after one that was interrupted. The next resize completes it.
       MIN(counter_id) <> 1 OR MAX(counter_id) <> COUNT(*) AS resize_incomplete
  FROM {{ table.name }}
 GROUP BY counter_name;
