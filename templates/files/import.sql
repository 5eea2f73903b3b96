{% include "files/_banner.sql" %}
--
-- Adds the counts that the columns of the roll-ups have to the counters{% if package.options.rollup_every.is_some() %}, and enables the event of the roll-ups{% endif %}.
-- Source it when all writers of the columns call the routines. If a column is written later, source it again: it adds the
-- counts that it has not added before. A roll-up does not overwrite counts that are not imported.

{% include "files/_session_begin.sql" %}
{%- for rollup in script.rollups() %}

-- {{ rollup.column() }}: the first two statements create missing rows. The third locks the rows of the parent table and
-- adds their counts in one statement, so that each count is added once.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
SELECT {% for (_, value) in rollup.key_values(rollup.parent_id()) %}{{ value }}, {% endfor %}0, 0
  FROM {{ rollup.model.table }} AS parent
  LEFT JOIN {{ rollup.written }} AS written
    ON written.record = {{ rollup.parent_id() }}
 WHERE {{ rollup.not_imported()|indent(1) }}
ON DUPLICATE KEY UPDATE `count` = {{ table.name }}.`count`;
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ rollup.written }} (record, total)
SELECT {{ rollup.parent_id() }}, 0
  FROM {{ rollup.model.table }} AS parent
  LEFT JOIN {{ rollup.written }} AS written
    ON written.record = {{ rollup.parent_id() }}
 WHERE {{ rollup.not_imported()|indent(1) }}
ON DUPLICATE KEY UPDATE total = {{ rollup.written }}.total;
{{ table.over_checks()|before(0) }}UPDATE (
  SELECT {{ rollup.parent_id() }} AS record,
         parent.{{ rollup.model.target.typed() }} AS total,
         parent.{{ rollup.model.target.typed() }} - written.total AS difference
    FROM {{ rollup.model.table }} AS parent
   INNER JOIN {{ rollup.written }} AS written
      ON written.record = {{ rollup.parent_id() }}
   WHERE {{ rollup.not_imported()|indent(3) }}
   LIMIT 18446744073709551615
     FOR UPDATE
) AS imported
 INNER JOIN {{ rollup.written }} AS written
    ON written.record = imported.record
 INNER JOIN {{ table.name }} AS first
    ON first.slot = 0
{%- for (column, value) in rollup.key_values("imported.record") %}
   AND first.{{ column.typed() }} = {{ value }}
{%- endfor %}
   SET first.`count` = first.`count` + imported.difference,
       written.total = imported.total;
{%- endfor %}
{%- if package.options.rollup_every.is_some() %}{% if let Some(event) = package.event() %}

-- Without DEFINER, ALTER EVENT changes the account of the event to yours.
ALTER
{%- include "shared/_definer.sql" %} EVENT {{ event }} ENABLE;
{%- endif %}{% endif %}

{% include "files/_session_end.sql" %}
