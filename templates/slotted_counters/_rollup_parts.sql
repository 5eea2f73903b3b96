{#- The condition for the records of a roll-up. -#}
{% block same -%}
{%- for (name, value) in rollup.model.same -%}
{{ name.typed() }} = {{ value.sql() }}{% if !loop.last %}
   AND {% endif %}
{%- endfor -%}
{%- endblock %}

{#- The same before another condition. -#}
{% block same_and -%}
{%- for (name, value) in rollup.model.same -%}
{{ name.typed() }} = {{ value.sql() }}
   AND {% endfor -%}
{%- endblock %}

{#- Counts in the column that the roll-up has not written and that were not imported. -#}
{% block not_imported -%}
(
  parent.{{ rollup.model.target.typed() }} > COALESCE(written.total, 0)
  OR parent.{{ rollup.model.target.typed() }} < 0 AND COALESCE(written.total, 0) = 0
)
{%- endblock %}

{#- The changes of a batch as a table. -#}
{% block changes -%}
JSON_TABLE(v_changes, '$[*]' COLUMNS (
  record {{ rollup.json_type() }} PATH '$.record',
  total DECIMAL(65, 0) PATH '$.total',
  old DECIMAL(65, 0) PATH '$.old',
  written DECIMAL(65, 0) PATH '$.written'))
{%- endblock %}

{#- The totals that the roll-up has written. -#}
{% block create_written -%}
-- From templates/slotted_counters/_rollup_parts.sql
CREATE TABLE IF NOT EXISTS {{ rollup.written }} (
  record {{ rollup.table.key.column_type(rollup.record) }} NOT NULL
    COMMENT {% filter sql_string %}{{ rollup.record.name.typed() }} of the record{% endfilter %},
  total DECIMAL(65, 0) NOT NULL
    COMMENT {% filter sql_string %}The value of {{ rollup.column() }} that was written or imported last{% endfilter %},
  PRIMARY KEY (record)
)
  ENGINE = InnoDB
  DEFAULT CHARACTER SET utf8mb4 COLLATE {{ rollup.package.options.collation }}
  COMMENT = {% filter sql_string %}Values of {{ rollup.column() }}. A greater value has counts that are not imported.{% endfilter %};
{%- endblock %}
