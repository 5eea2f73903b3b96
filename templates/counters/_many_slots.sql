{{ table.set_statement("group_concat_max_len=4294967295")|before(0) }}SELECT COUNT(*) AS counters,
       -- MySQL reads a JSON number that exceeds the range of BIGINT as a negative number.
       JSON_ARRAYAGG(JSON_ARRAY(counter_name, {{ slot|indent(7) }}, CAST(amount AS CHAR))) AS amounts,
       MIN(IF(v_slots IS NULL, entry, NULL)) AS unknown
{%- if !check.is_empty() %},
       MIN(valid) AS valid
{%- endif %}
{%- if !into.is_empty() %}
  INTO {{ into }}
{%- endif %}
  FROM (
    SELECT sums.counter_name,
           sums.amount,
           sums.entry,
{%- if !check.is_empty() %}
           sums.valid,
{%- endif %}
           (
             -- Reads the end of the index. Without these clauses, MySQL reads every slot, and MariaDB 11.8 the whole table.
             SELECT slots.counter_id
               FROM {{ table.name }} AS slots FORCE INDEX (PRIMARY)
              WHERE slots.counter_name = sums.counter_name
              ORDER BY slots.counter_name DESC, slots.counter_id DESC
              LIMIT 1
           ) AS v_slots
      FROM {{ table.sums(source, check)|indent(6) }}
     -- Without LIMIT, MariaDB moves the outer condition into the subquery and does not find the column (1054).
     LIMIT {{ ENTRIES_MAX }}
  ) AS found
 WHERE amount <> 0
    OR v_slots IS NULL
{%- if !check.is_empty() %}
    OR NOT valid
{%- endif %};
