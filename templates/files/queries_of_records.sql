{% import "macros.sql" as m -%}
{{ sql.banner() }}
-- Prepared statements
{%- if o.column().is_none() %} for servers without routines (after create_tables.sql), or
{%- endif %} for speed.
-- They mix with calls, except as said here.
{%- if o.mariadb() %}
-- Without SET STATEMENT, MariaDB 11.8 rejects rows that have changed since the first SELECT of the transaction (1020).
{%- endif %}
-- {% if o.column().is_some() %}Roll-up, reset{% else %}Reset, compact{% endif %} and delete go by the routines.

-- name: increment
-- Parameters: {{ sql.key("{name}", ", ") }}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
VALUES ({{ sql.key("?", ", ") }}, {{ m::slot(o, "", o.setup_slots()) }}, 1)
ON DUPLICATE KEY UPDATE `count` = `count` + 1;

-- name: add
-- Parameters: {{ sql.key("{name}", ", ") }}, amount, amount
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
VALUES ({{ sql.key("?", ", ") }}, {{ m::slot(o, "", o.setup_slots()) }}, ?)
ON DUPLICATE KEY UPDATE `count` = `count` + ?;

-- name: add_many
-- A JSON array of arrays, each the key and an integer; the server converts other values to integers.
-- Two of these statements in one transaction can deadlock with another (1213).
-- Parameters: amounts
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
SELECT {{ sql.key("{value}", ", ") }}, {{ m::slot(o, "", o.setup_slots()) }}, amount
  FROM JSON_TABLE(CONVERT(? USING utf8mb4), '$[*]' COLUMNS (
         {{ sql.key("{} {json type} PATH '$[{n}]'", ",\n         ") }},
         amount BIGINT PATH '$[{{ o.key().len() }}]'
       )) AS entries
 ORDER BY {{ sql.key("{}", ", ") }}
ON DUPLICATE KEY UPDATE `count` = {{ o.table }}.`count` + amount;

-- name: get
{%- if o.column().is_some() %}
-- Column and pending counts in one statement, so that a roll-up cannot come between. Locks no row.
-- Parameters: {{ sql.key("{name}", ", ") }}
SELECT total
  FROM {{ package.totals }}
 WHERE {{ sql.key("{} = ?", "\n   AND ") }};

-- name: totals
-- Parameters: none
SELECT {{ sql.key("{}", ", ") }}, total
  FROM {{ package.totals }};
{%- else %}
-- Locks no row.
-- Parameters: {{ sql.key("{name}", ", ") }}
SELECT COALESCE(SUM(`count`), 0) AS total
  FROM {{ o.table }}
 WHERE {{ sql.key("{} = ?", "\n   AND ") }};

-- name: totals
-- Parameters: none
SELECT {{ sql.key("{}", ", ") }}, SUM(`count`) AS total
  FROM {{ o.table }}
 GROUP BY {{ sql.key("{}", ", ") }};{% endif %}
