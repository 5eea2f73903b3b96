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

{%- let slot = table.slot_expression() %}

-- name: increment
-- Adds 1.
-- Parameters: {{ table.key.names() }}
{{ table.upsert("1", slot.as_str()) }}

-- name: add
-- Adds an amount, which may be negative.
-- Parameters: {{ table.key.names() }}, amount, amount
{{ table.upsert("?", slot.as_str()) }}

-- name: take
-- Takes an amount from the slot of the connection, if the slot has it. Otherwise, no row is changed: execute
-- slots_to_take_from, and take_from_slot for its slots until one has the amount. No statement takes from several slots: the
-- procedure does. These statements require that no slot is negative, so do not subtract with add.
-- Parameters: amount, {{ table.key.names() }}, amount
{{ table.take_slot("?", slot.as_str()) }}

-- name: slots_to_take_from
-- Parameters: {{ table.key.names() }}, amount
SELECT slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.count() }} >= ?
 ORDER BY {{ table.count() }} DESC;

-- name: take_from_slot
-- Parameters: amount, {{ table.key.names() }}, slot, amount
{{ table.take_slot("?", "?") }}

-- name: add_many
-- Adds amounts to many records: a JSON array of arrays, each with the columns of the key and an integer. The statement does
-- not validate the values as the procedure does: a value of another type can be rounded.
-- Parameters: amounts
{{ table.upsert_many("?", slot.as_str(), "") }}

-- name: get
-- Returns the total as DECIMAL, or 0 if the record has no rows. Locks no row.
-- Parameters: {{ table.key.names() }}
SELECT COALESCE(SUM({{ table.count() }}), 0) AS total
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: totals
-- Returns all totals. Reads the whole table.
-- Parameters: none
{{ table.record_totals() }}

-- name: reset_first
-- Sets the total. Run reset_first and then reset_rest in one transaction.
-- Parameters: {{ table.key.names() }}, value, value
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, {{ table.count() }})
VALUES ({{ table.key.arguments() }}, 0, ?)
ON DUPLICATE KEY UPDATE {{ table.count() }} = ?;

-- name: reset_rest
-- Parameters: {{ table.key.names() }}
{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET {{ table.count() }} = 0
 WHERE {{ table.key.equals("") }}
   AND slot > 0;

-- name: delete
-- Deletes the record.
-- Parameters: {{ table.key.names() }}
{{ table.over_snapshot()|before(0) }}DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- To compact a record: for each row of compact_slots, run one transaction that adds the count to slot 0 and then the
-- negative count to the slot of the row, both with add_to_slot. At the end, run compact_rest. Each transaction adds 0 to
-- the total, so that the total is correct at any time.

-- name: compact_slots
-- Parameters: {{ table.key.names() }}
SELECT slot, {{ table.count() }}
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND slot > 0
 ORDER BY slot;

-- name: add_to_slot
-- Parameters: {{ table.key.names() }}, slot, amount, amount
{{ table.upsert("?", "?") }}

-- name: compact_rest
-- Deletes the slots whose count is 0.
-- Parameters: {{ table.key.names() }}
{{ table.over_snapshot()|before(0) }}DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND slot > 0
   AND {{ table.count() }} = 0;
{%- for rollup in script.rollups() %}

-- name: {{ rollup.model.suffix() }}_page
-- Returns up to {{ BATCH }} totals to roll up. The first page starts with the smallest {{ rollup.record.name.typed() }}, each following page with the
-- last one of the previous page. A page of one row is the last page.
-- Parameters: {{ rollup.record.name.typed() }}
SELECT {{ rollup.record_value() }},
       SUM({{ table.count() }}) AS total
  FROM {{ table.name }}
 WHERE {{ rollup.same_and() }}{{ rollup.record_value() }} >= ?
 GROUP BY {{ rollup.record_value() }}
 ORDER BY {{ rollup.record_value() }}
 LIMIT {{ BATCH }};

-- name: {{ rollup.model.suffix() }}_start
-- Creates the row that {{ rollup.model.suffix() }}_write changes.
-- Parameters: {{ rollup.record.name.typed() }}
INSERT INTO {{ rollup.written }} (record, total)
VALUES (?, 0)
ON DUPLICATE KEY UPDATE total = total;

-- name: {{ rollup.model.suffix() }}_write
-- Does not overwrite counts that are not imported: source import.sql if it changes no row of {{ rollup.model.table.plain() }}.
-- Parameters: total, total, {{ rollup.record.name.typed() }}
UPDATE {{ rollup.model.table }} AS parent
 INNER JOIN {{ rollup.written }} AS written
    ON written.record = {{ rollup.parent_id() }}
   SET parent.{{ rollup.model.target.typed() }} = ?,
       written.total = ?
 WHERE {{ rollup.parent_id() }} = ?
   AND {{ rollup.not_imported()|indent(3) }} IS NOT TRUE;
{%- endfor %}
