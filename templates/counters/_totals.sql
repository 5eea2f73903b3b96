SELECT counter_name,
       MAX(description) AS description,
       MAX(start_date) AS start_date,
       COUNT(IF(counter_id > 0, 1, NULL)) AS slots,
{%- if table.bounded() %}
       -- At most 9223372036854775807. Of a greater total, the function returns error 30008.
       COALESCE(CAST(SUM(counter) AS SIGNED), 0) AS total,
       -- 1 after a resize that was interrupted. The next resize completes it.
       MIN(counter_id) <> 1 OR MAX(counter_id) <> COUNT(*) AS resize_incomplete
{%- else %}
       SUM(counter) AS total,
       -- 1 after a resize that was interrupted. The next call of counter_resize completes it.
       MIN(IF(counter_id = 0, 1, counter_id)) <> 1 OR MAX(counter_id) <> COUNT(IF(counter_id = 0, NULL, 1)) AS resize_incomplete
{%- endif %}
  FROM {{ table.name }}
 GROUP BY counter_name;
