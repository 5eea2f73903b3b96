{{ table.set_statement("group_concat_max_len=4294967295, innodb_snapshot_isolation=OFF")|before(0) }}SELECT COUNT(IF(amount <> 0, 1, NULL)) AS counters,
       -- MySQL reads a JSON number that exceeds the range of BIGINT as a negative number.
       JSON_ARRAYAGG(JSON_ARRAY(counter_name, COALESCE({{ table.slot_of_found()|indent(7) }}, 1), CAST(amount AS CHAR))) AS amounts,
       COALESCE(MAX(v_slots IS NULL), FALSE) AS unknown
{%- if !into.is_empty() %},
       MIN(invalid)
{%- if table.bounded() %},
       MIN(negative)
{%- endif %}
  INTO {{ into }}{% if table.bounded() %}, v_negative{% endif %}
{%- endif %}
  FROM (
    SELECT sums.*,
           (
             -- Reads the end of the index. Without these clauses, MySQL reads every slot, and MariaDB 11.8 the whole table.
             SELECT slots.counter_id
               FROM {{ table.name }} AS slots FORCE INDEX (PRIMARY)
              WHERE slots.counter_name = sums.counter_name
              ORDER BY slots.counter_name DESC, slots.counter_id DESC
              LIMIT 1
           ) AS v_slots
      FROM (
        SELECT p_counter_name AS counter_name,
               SUM(p_amount) AS amount
{%- if !into.is_empty() %},
               MIN(IF({{ table.entry_fits()|indent(15) }}, NULL, entry)) AS invalid
{%- if table.bounded() %},
               MIN(IF(p_amount < 0, entry, NULL)) AS negative
{%- endif %}
{%- endif %}
          FROM {{ table.entries(source, into)|indent(10) }}
         GROUP BY p_counter_name
      ) AS sums
     -- Without LIMIT, MariaDB moves the outer condition into the subquery and does not find the column (1054).
     LIMIT {{ ENTRIES_MAX }}
  ) AS found
 WHERE amount <> 0
    OR v_slots IS NULL
{%- if !into.is_empty() %}
    OR invalid IS NOT NULL
{%- if table.bounded() %}
    OR negative IS NOT NULL
{%- endif %}
{%- endif %};
