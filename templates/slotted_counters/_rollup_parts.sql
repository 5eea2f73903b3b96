{#- Parts of statements on a parent table and the slots of its records. Each block is a part. -#}

{#- The condition that the arguments of a routine are a record of the roll-up. -#}
{% block is_argument -%}
{%- for (column, value) in rollup.given() -%}
{{ table.key.argument(column) }} = {{ value.sql() }}{% if !loop.last %} AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- A row of the parent table and the slots of its record. -#}
{% block joined -%}
{%- for (column, id) in rollup.pairs() -%}
parent.{{ id.typed() }} = {{ slots }}.{{ column.name.typed() }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The row of the parent table of the record in the arguments. Parameters hide columns of the same name without the name of the table. -#}
{% block parent_of_arguments -%}
{%- for (column, id) in rollup.pairs() -%}
{{ rollup.model.table }}.{{ id.typed() }} = {{ table.key.argument(column) }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- if !rollup.model.same.is_empty() %}
   AND {{ rollup.is_argument() }}
{%- endif -%}
{%- endblock %}

{#- The slots of the record of a row of the parent table. -#}
{% block slots_of_parent -%}
{%- for (name, value) in rollup.key_of_parent() -%}
slots.{{ name.typed() }} = {{ value }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The records of the roll-up. -#}
{% block in_same -%}
{%- for (name, value) in rollup.model.same -%}
{{ alias }}{{ name.typed() }} = {{ value.sql() }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The records of the roll-up that meet another condition. -#}
{% block same_where -%}
{{ rollup.in_same("") }}{% if !rollup.model.same.is_empty() && !condition.is_empty() %}
   AND {% endif %}{{ condition }}
{%- endblock %}

{#- The same slot of a record in two sets of slots. -#}
{% block slot_of -%}
{%- for (name, value) in rollup.model.same -%}
{{ target }}.{{ name.typed() }} = {{ value.sql() }}
   AND {% endfor -%}
{%- for column in rollup.records -%}
{{ target }}.{{ column.name.typed() }} = {{ source }}.{{ column.name.typed() }}
   AND {% endfor -%}
{{ target }}.slot = {{ source }}.slot
{%- endblock %}

{#- The records of the roll-up from p_first to p_last. BETWEEN of the first column lets the server read a range of the index. -#}
{% block in_range -%}
{{ rollup.in_same(alias) }}{% if !rollup.model.same.is_empty() %}
   AND {% endif %}{{ rollup.values(alias)[0] }} BETWEEN {{ rollup.bounds("p_first")[0] }} AND {{ rollup.bounds("p_last")[0] }}
{%- if rollup.records.len() > 1 %}
   AND {{ rollup.is_beyond(alias, ">", "p_first", "=") }}
   AND {{ rollup.is_beyond(alias, "<", "p_last", "=") }}
{%- endif -%}
{%- endblock %}

{% block follows -%}
{{ rollup.is_beyond("", ">", name, "") }}
{%- endblock %}

{% block follows_or_equals -%}
{{ rollup.is_beyond("", ">", name, "=") }}
{%- endblock %}

{#- A record of several columns is compared by the first, then by the second if the first is the same. The last sign can have `or_equal`. -#}
{% block is_beyond -%}
{%- let columns = rollup.compared(alias, name) -%}
{%- if columns.len() > 1 %}({% endif -%}
{%- for (value, bound) in columns.iter() -%}
{%- for (other, other_bound) in columns.iter().take(loop.index - 1) -%}
{{ other }} = {{ other_bound }} AND {% endfor -%}
{{ value }} {{ sign }}{% if loop.last %}{{ or_equal }}{% endif %} {{ bound }}{% if !loop.last %}
     OR {% endif %}
{%- endfor -%}
{%- if columns.len() > 1 %}){% endif -%}
{%- endblock %}

{% block one_record -%}
{%- for (first, last) in rollup.bounds("p_first").into_iter().zip(rollup.bounds("p_last")) -%}
{{ first }} = {{ last }}{% if !loop.last %} AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The row of the parent table of the record in the variables. -#}
{% block parent_of -%}
{%- for (id, value) in rollup.model.ids.iter().zip(rollup.bounds(name)) -%}
parent.{{ id.typed() }} = {{ value }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- Whether the table has a CHECK, or the column is in a unique index or a foreign key. -#}
{% block has_constraint -%}
EXISTS (SELECT 1 FROM information_schema.TABLE_CONSTRAINTS
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {{ rollup.model.table.name()|sql_string }} AND CONSTRAINT_TYPE = 'CHECK'
         UNION ALL SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE()
           AND TABLE_NAME = {{ rollup.model.table.name()|sql_string }} AND COLUMN_NAME = {{ rollup.model.target.name()|sql_string }})
{%- endblock %}

{#- Each node of a cluster moves the slots that it writes itself. -#}
{% block of_node -%}
{%- if table.on_nodes() %}
AND MOD({{ alias }}slot, {{ table.nodes() }}) = MOD({{ table.node() }}, {{ table.nodes() }})
{%- endif -%}
{%- endblock %}

{#- Aggregates return one row, also if there is no record. -#}
{% block next_record -%}
{%- if let Some(value) = rollup.plain_record() -%}
SELECT MIN({{ value }})
  INTO {{ name }}
  FROM {{ table.name }}
{%- if !rollup.model.same.is_empty() || !condition.is_empty() %}
 WHERE {{ rollup.same_where(condition) }}
{%- endif -%}
;
{%- else -%}
SELECT {{ rollup.records_with("MAX(", ")") }}
  INTO {{ rollup.bound_list(name) }}
  FROM (
    SELECT {{ rollup.sorted_as() }}
      FROM {{ table.name }}
{%- if !rollup.model.same.is_empty() || !condition.is_empty() %}
     WHERE {{ rollup.same_where(condition)|indent(4) }}
{%- endif %}
     ORDER BY {{ rollup.sorted() }}
     LIMIT 1
  ) AS next;
{%- endif -%}
{%- endblock %}

{#- The last record of a batch. -#}
{% block last_record -%}
SELECT {{ rollup.records_with("MAX(", ")") }}
  INTO {{ rollup.bound_list("v_last") }}
  FROM (
{%- let condition = rollup.follows_or_equals("v_first") %}
{%- if rollup.plain_record().is_some() %}
    SELECT DISTINCT {{ rollup.sorted_as() }}
      FROM {{ table.name }}
     WHERE {{ rollup.same_where(condition.as_str())|indent(4) }}
     ORDER BY {{ rollup.sorted() }}
     LIMIT v_size
  ) AS batch;
{%- else %}
    SELECT {{ rollup.records_with("", "") }}
      FROM (
        SELECT DISTINCT {{ rollup.sorted_as() }}
          FROM {{ table.name }}
         WHERE {{ rollup.same_where(condition.as_str())|indent(8) }}
         ORDER BY {{ rollup.sorted() }}
         LIMIT v_size
      ) AS batch
     ORDER BY {{ rollup.records_with("", " DESC") }}
     LIMIT 1
  ) AS last;
{%- endif -%}
{%- endblock %}

{#- The records that have pending counts. -#}
{% block pending_counts -%}
SELECT {{ rollup.record_list("slots.") }},
       SUM(slots.`count`) AS pending,
       MAX(parent.{{ rollup.model.ids[0].typed() }} IS NOT NULL) AS has_row
  FROM {{ table.name }} AS slots
  LEFT JOIN {{ rollup.model.table }} AS parent
    ON {{ rollup.joined("slots") }}
{%- if !rollup.model.same.is_empty() %}
 WHERE {{ rollup.in_same("slots.") }}
{%- endif %}
 GROUP BY {{ rollup.record_list("slots.") }}
HAVING SUM(slots.`count`) <> 0;
{%- endblock %}

{#- Locks what is pending and its rows, and waits for them. DO would hide an error on MariaDB. -#}
{% block lock_rows -%}
SET @slotted_locked = (
  SELECT COUNT(*)
    FROM {{ table.name }} AS slots
   STRAIGHT_JOIN {{ rollup.model.table }} AS parent
      ON {{ rollup.joined("slots")|indent(2) }}
   WHERE {{ rollup.in_same("slots.")|indent(2) }}{% if !rollup.model.same.is_empty() %}
     AND {% endif %}slots.`count` <> 0
     FOR UPDATE
);
{%- endblock %}

{#- The slots that have pending counts and a row, both not locked by another transaction. -#}
{% block pending -%}
  FROM {{ table.name }} AS slots
 STRAIGHT_JOIN {{ rollup.model.table }} AS parent
    ON {{ rollup.joined("slots") }}
 WHERE {{ rollup.in_range("slots.") }}
   {{ rollup.of_node("slots.")|before(3) }}AND slots.`count` <> 0
   FOR UPDATE SKIP LOCKED
{%- endblock %}

{#- The same with the sum of each record. -#}
{% block moved -%}
SELECT {{ rollup.record_list("slots.") }}, slots.slot, slots.`count` AS pending,
       SUM(slots.`count`) OVER (PARTITION BY {{ rollup.record_list("slots.") }}) AS total
  {{ rollup.pending() }}
{%- endblock %}

{#- Without an assignment, ON UPDATE CURRENT_TIMESTAMP would change the columns that are kept. -#}
{% block changes -%}
parent.{{ rollup.model.target.typed() }} = COALESCE(parent.{{ rollup.model.target.typed() }}, 0) + moved.total,
{%- for column in rollup.model.keep %}
    parent.{{ column.typed() }} = parent.{{ column.typed() }},
{%- endfor %}
    slots.`count` = slots.`count` - moved.pending
{%- endblock %}

{#- A parent row that does not exist, or has NULL, counts as 0. -#}
{% block column_of_arguments -%}
COALESCE((
  SELECT CAST({{ rollup.model.table }}.{{ rollup.model.target.typed() }} AS DECIMAL(20, 0))
    FROM {{ rollup.model.table }}
   WHERE {{ rollup.parent_of_arguments()|indent(2) }}
{%- if !lock.is_empty() %}
     {{ lock }}
{%- endif %}
), 0)
{%- endblock %}
