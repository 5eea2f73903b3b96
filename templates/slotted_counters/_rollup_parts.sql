{#- Parts of statements on a parent table and the slots of its records. Each block is a part. -#}

{#- The records from p_first to p_last. BETWEEN of the first column lets the server read a range of the index. -#}
{% block in_range -%}
{{ alias }}{{ rollup.first() }} BETWEEN {{ rollup.bounds("p_first")[0] }} AND {{ rollup.bounds("p_last")[0] }}
{%- if !rollup.single() %}
   AND {{ rollup.is_beyond(alias, ">", "p_first", "=") }}
   AND {{ rollup.is_beyond(alias, "<", "p_last", "=") }}
{%- endif -%}
{%- endblock %}

{#- A record of several columns is compared by the first, then by the second if the first is the same. The last sign can have `or_equal`. -#}
{% block is_beyond -%}
{%- let pattern = "{}{{}}"|format(alias) -%}
{%- let columns = rollup.compared(pattern.as_str(), name) -%}
{%- if columns.len() > 1 %}({% endif -%}
{%- for (value, bound) in columns.iter() -%}
{%- for (other, other_bound) in columns.iter().take(loop.index - 1) -%}
{{ other }} = {{ other_bound }} AND {% endfor -%}
{{ value }} {{ sign }}{% if loop.last %}{{ or_equal }}{% endif %} {{ bound }}{% if !loop.last %}
     OR {% endif %}
{%- endfor -%}
{%- if columns.len() > 1 %}){% endif -%}
{%- endblock %}

{#- Each node of a cluster moves the slots that it writes itself. -#}
{% block of_node -%}
MOD({{ alias }}slot, {{ table.nodes() }}) = MOD({{ table.node() }}, {{ table.nodes() }})
{%- endblock %}

{#- Aggregates return one row, even if there is no record. -#}
{% block next_record -%}
{%- if rollup.single() -%}
SELECT MIN({{ rollup.first() }})
  INTO v_first
  FROM {{ table.name }}
{%- if !condition.is_empty() %}
 WHERE {{ condition }}
{%- endif -%}
;
{%- else -%}
SELECT {% for record in rollup.bounds("record") %}MAX({{ record }}){% if !loop.last %}, {% endif %}{% endfor %}
  INTO {{ rollup.bound_list("v_first") }}
  FROM (
    SELECT {% for (column, record) in rollup.compared("{}", "record") %}{{ column }} AS {{ record }}{% if !loop.last %}, {% endif %}{% endfor %}
      FROM {{ table.name }}
{%- if !condition.is_empty() %}
     WHERE {{ condition|indent(4) }}
{%- endif %}
     ORDER BY {{ rollup.list("{}") }}
     LIMIT 1
  ) AS next;
{%- endif -%}
{%- endblock %}

{% block last_record -%}
SELECT {% for record in rollup.bounds("record") %}MAX({{ record }}){% if !loop.last %}, {% endif %}{% endfor %}
  INTO {{ rollup.bound_list("v_last") }}
  FROM (
{%- if rollup.single() %}
    SELECT DISTINCT {{ rollup.first() }} AS record
      FROM {{ table.name }}
     WHERE {{ rollup.is_beyond("", ">", "v_first", "=") }}
     ORDER BY {{ rollup.first() }}
     LIMIT v_size
  ) AS batch;
{%- else %}
    SELECT {{ rollup.bound_list("record") }}
      FROM (
        SELECT DISTINCT {% for (column, record) in rollup.compared("{}", "record") %}{{ column }} AS {{ record }}{% if !loop.last %}, {% endif %}{% endfor %}
          FROM {{ table.name }}
         WHERE {{ rollup.is_beyond("", ">", "v_first", "=")|indent(8) }}
         ORDER BY {{ rollup.list("{}") }}
         LIMIT v_size
      ) AS batch
     ORDER BY {% for record in rollup.bounds("record") %}{{ record }} DESC{% if !loop.last %}, {% endif %}{% endfor %}
     LIMIT 1
  ) AS last;
{%- endif -%}
{%- endblock %}

{#- The records that have pending counts. -#}
{% block pending_counts -%}
SELECT {{ rollup.list("slots.{}") }},
       SUM(slots.`count`) AS pending,
       MAX(parent.{{ rollup.first() }} IS NOT NULL) AS has_row
  FROM {{ table.name }} AS slots
  LEFT JOIN {{ rollup.parent }} AS parent
    ON {{ rollup.all("parent.{} = slots.{}") }}
 GROUP BY {{ rollup.list("slots.{}") }}
HAVING SUM(slots.`count`) <> 0;
{%- endblock %}

{#- Locks what is pending and its rows, and waits for them. DO would hide an error on MariaDB. -#}
{% block lock_rows -%}
SET @slotted_locked = (
  SELECT COUNT(*)
    FROM {{ table.name }} AS slots
   STRAIGHT_JOIN {{ rollup.parent }} AS parent
      ON {{ rollup.all("parent.{} = slots.{}")|indent(2) }}
   WHERE slots.`count` <> 0
     FOR UPDATE
);
{%- endblock %}

{#- The slots that have pending counts and a row, both not locked by another transaction. -#}
{% block pending -%}
  FROM {{ table.name }} AS slots
 STRAIGHT_JOIN {{ rollup.parent }} AS parent
    ON {{ rollup.all("parent.{} = slots.{}") }}
 WHERE {{ rollup.in_range("slots.") }}
   AND {{ rollup.of_node("slots.") }}
   AND slots.`count` <> 0
   FOR UPDATE SKIP LOCKED
{%- endblock %}

{#- The same with the sum of each record. -#}
{% block moved -%}
SELECT {{ rollup.list("slots.{}") }}, slots.slot, slots.`count` AS pending,
       SUM(slots.`count`) OVER (PARTITION BY {{ rollup.list("slots.{}") }}) AS total
  {{ rollup.pending() }}
{%- endblock %}

{#- Without an assignment, ON UPDATE CURRENT_TIMESTAMP would change the columns that are kept. -#}
{% block changes -%}
parent.{{ rollup.column.typed() }} = COALESCE(parent.{{ rollup.column.typed() }}, 0) + moved.total,
{%- for column in rollup.keep %}
    parent.{{ column.typed() }} = parent.{{ column.typed() }},
{%- endfor %}
    slots.`count` = slots.`count` - moved.pending
{%- endblock %}

{#- A parent row that does not exist, or has NULL, counts as 0. Parameters hide columns of the same name without the name of the table. -#}
{% block column_of_arguments -%}
COALESCE((
  SELECT CAST({{ rollup.parent }}.{{ rollup.column.typed() }} AS DECIMAL(20, 0))
    FROM {{ rollup.parent }}
   WHERE {% for column in table.key.columns() %}{{ rollup.parent }}.{{ column.name.typed() }} = {{ table.key.argument(column) }}{% if !loop.last %}
     AND {% endif %}{% endfor %}
{%- if !lock.is_empty() %}
     {{ lock }}
{%- endif %}
), 0)
{%- endblock %}
