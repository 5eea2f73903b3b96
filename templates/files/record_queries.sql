{% include "files/_queries.sql" %}
{%- if package.options.random() %}
--
-- The slot is FLOOR(RAND() * {{ table.slots() }}), 0 to {{ table.last_slot_number() }}. Without FLOOR(), the server would round and use one slot more.
{%- endif %}
--
-- Tested on MySQL and MariaDB. Vitess (PlanetScale) and TiDB support the same statements, which is not tested. With
-- Vitess, shard the table by the key, so that one shard has all slots of a record.
--
-- The server rejects NULL for a key column (1048) and, in strict mode, a value that its column cannot store (1264, 1265, 1292, 1406).

{%- let key = table.key.names() %}
{%- let bounded = package.options.bounded %}
{%- if bounded %}

-- name: setup
-- Gives a record its first count, such as a quota, of at least 0. If slot 0 exists, the server returns error 1062: of several
-- connections at once, exactly one succeeds.
-- Parameters: {{ key }}, value
INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, {{ table.count() }})
VALUES ({{ table.key.arguments() }}, 0, ?);
{%- endif %}
{%- for (suffix, servers, slot) in table.plain_slots() %}

-- name: increment{{ suffix }}
-- Adds 1{{ servers }}.
-- Parameters: {{ key }}
{{ table.upsert("1", slot) }}

-- name: add{{ suffix }}
-- Adds an amount{% if bounded %} of at least 1{% else %}, which may be negative{% endif %}{{ servers }}.
-- Parameters: {{ key }}, amount, amount
{{ table.upsert("?", slot) }}
{%- if bounded %}

-- name: take{{ suffix }}
-- Takes an amount of at least 1 from the slot of the connection, if the slot has it{{ servers }}: changes one row or none. If none,
-- execute slots_to_take_from, and take_from_slot for its slots until one changes a row. No statement takes from several slots:
-- the procedure does.
-- Parameters: amount, {{ key }}, amount
{{ table.take_slot("?", slot) }};
{%- endif %}
{%- endfor %}
{%- if bounded %}

-- name: slots_to_take_from
-- Parameters: {{ key }}, amount
SELECT slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.count() }} >= ?
 ORDER BY {{ table.count() }} DESC;

-- name: take_from_slot
-- Parameters: amount, {{ key }}, slot, amount
{{ table.take_slot("?", "?") }};
{%- else %}

-- name: add_many
-- Adds amounts to many records: a JSON array of arrays, each with the columns of the key and an integer. The statement does
-- not validate the values as the procedure does: a value of another type can be rounded.
-- Parameters: amounts
{{ table.upsert_many("CONVERT(? USING utf8mb4)", table.slot_of_call().as_str()) }}
{%- endif %}

-- name: get
-- Returns the total as DECIMAL, or 0 if the record has no rows. Locks no row.
-- Parameters: {% if table.rollup().is_some() %}{{ key }}, {% endif %}{{ key }}
SELECT COALESCE(SUM({{ table.count() }}), 0)
{%- if let Some(rollup) = table.rollup() %} + {{ rollup.column_of_arguments("")|indent(7) }}
{%- endif %} AS total
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: totals
-- Returns all totals. Reads the whole table.
-- Parameters: none
{{ table.record_totals() }}

-- name: first_slot
-- Execute it before reset, delete, and compact.
-- Parameters: {{ key }}
{{ table.first_row() }}

-- name: reset
-- Sets the total{% if bounded %} to a value of at least 0{% endif %}.
-- Parameters: {{ key }}, value, {% if table.rollup().is_some() %}{{ key }}, {% endif %}{{ key }}, {{ key }}
{{ table.reset_upsert("?", "") }}

-- name: delete
-- Deletes the record.
-- Parameters: {{ key }}, {{ key }}, {{ key }}
{{ table.delete_slots() }}

-- name: compact
-- Moves all counts to slot 0. Then execute compact_rest.
-- Parameters: {{ key }}, {{ key }}, {{ key }}
{{ table.fold_record(table.first_and_others().as_str()) }}

-- name: compact_rest
-- Deletes the slots whose count is 0.
-- Parameters: {{ key }}, {{ key }}, {{ key }}
{{ table.delete_empty() }}
{%- if let Some(rollup) = table.rollup() %}

-- name: page_of_{{ rollup.statement_name() }}
-- Returns rows of {{ rollup.parent.plain() }} with their exact totals, in the order of the column, which is the total up to the last roll-up.
-- Parameters: number
SELECT parent.*,
       COALESCE(parent.{{ rollup.column.typed() }}, 0) + COALESCE((
         SELECT SUM(slots.`count`)
           FROM {{ table.name }} AS slots
          WHERE {{ rollup.all("slots.{} = parent.{}")|indent(9) }}
       ), 0) AS total
  FROM {{ rollup.parent }} AS parent
 ORDER BY parent.{{ rollup.column.typed() }} DESC
 LIMIT ?;

-- name: pending_of_{{ rollup.statement_name() }}
-- Returns the records that have pending counts, and whether they have a row in {{ rollup.parent.plain() }}.
-- Parameters: none
{{ rollup.pending_counts() }}
{%- endif %}
