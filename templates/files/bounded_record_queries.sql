{% include "files/_bounded_queries.sql" %}
{%- let key = table.key.names() %}
{%- let own = table.own_slot() %}
{%- let on_nodes = table.slot_of_call() %}

-- name: setup
-- Gives a record its first count, such as a quota, of at least 0. If slot 0 exists, the server returns error 1062: of several
-- connections at once, exactly one succeeds.
-- Parameters: {{ key }}, value
INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, {{ table.count() }})
VALUES ({{ table.key.arguments() }}, 0, ?);

-- name: increment
-- Adds 1, on a single server.
-- Parameters: {{ key }}
{{ table.upsert("1", own.as_str()) }}

-- name: increment_on_nodes
-- Adds 1, on any server and cluster.
-- Parameters: {{ key }}
{{ table.upsert("1", on_nodes.as_str()) }}

-- name: add
-- Adds an amount of at least 1, on a single server.
-- Parameters: {{ key }}, amount, amount
{{ table.upsert("?", own.as_str()) }}

-- name: add_on_nodes
-- Parameters: {{ key }}, amount, amount
{{ table.upsert("?", on_nodes.as_str()) }}

-- name: take
-- Takes an amount of at least 1 from the slot of the connection, if the slot has it: changes one row or none. If none, execute
-- slots_to_take_from, and take_from_slot for its slots until one changes a row. No statement takes from several slots: the
-- procedure does.
-- Parameters: amount, {{ key }}, amount
{{ table.take_slot("?", own.as_str()) }}

-- name: take_on_nodes
-- Parameters: amount, {{ key }}, amount
{{ table.take_slot("?", on_nodes.as_str()) }}

-- name: slots_to_take_from
-- Parameters: {{ key }}, amount
SELECT slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND {{ table.count() }} >= ?
 ORDER BY {{ table.count() }} DESC;

-- name: take_from_slot
-- Parameters: amount, {{ key }}, slot, amount
{{ table.take_slot("?", "?") }}

-- name: get
-- Returns the total as DECIMAL, or 0 if the record has no rows. Locks no row.
-- Parameters: {{ key }}
SELECT COALESCE(SUM({{ table.count() }}), 0) AS total
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
-- Sets the total to a value of at least 0.
-- Parameters: {{ key }}, value, {{ key }}, {{ key }}
{{ table.reset_bounded("?", "") }}

-- name: delete
-- Deletes the record.
-- Parameters: {{ key }}, {{ key }}, {{ key }}
{{ table.delete_slots() }}

-- name: compact
-- Moves all counts to slot 0. Then execute compact_rest.
-- Parameters: {{ key }}, {{ key }}, {{ key }}
{{ table.fold_record() }}

-- name: compact_rest
-- Deletes the slots whose count is 0.
-- Parameters: {{ key }}, {{ key }}, {{ key }}
{{ table.delete_empty() }}
