{% include "files/_bounded_queries.sql" %}
{%- let name = table.key.names() %}
{%- let own = table.own_slot() %}
{%- let on_nodes = table.node_slot("?") %}

-- name: setup
-- Creates a counter. If the counter exists, the server returns error 1062. The value is at least 0.
-- Parameters: {{ name }}, description, value, slots
{{ table.create_counter(table.most_slots(), table.slots(), "?", "?") }}

-- name: slots
-- Returns the number of slots for the other statements, or NULL if the counter does not exist. An application can keep the
-- number: after a resize, the statements are exact with the earlier number, too.
-- Parameters: {{ name }}
SELECT {{ table.usable_slots("MAX(counter_id)")|indent(7) }} AS slots
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: increment
-- Adds 1, on a single server. If no row is changed, the counter has fewer slots now: execute the statement again with 1 as the
-- number of slots. If no row is changed with 1, the counter does not exist.
-- Parameters: {{ name }}, slots
{{ table.update_slot("+ 1", own.as_str(), "") }}

-- name: increment_on_nodes
-- Adds 1, on any server and cluster. If no row is changed, execute the statement again with {{ table.nodes() }} as the
-- number of slots.
-- Parameters: {{ name }}, slots
{{ table.update_slot("+ 1", on_nodes.as_str(), "") }}

-- name: add
-- Adds an amount of at least 1. Otherwise, see increment.
-- Parameters: amount, {{ name }}, slots
{{ table.update_slot("+ ?", own.as_str(), "") }}

-- name: add_on_nodes
-- Parameters: amount, {{ name }}, slots
{{ table.update_slot("+ ?", on_nodes.as_str(), "") }}

-- name: take
-- Takes an amount of at least 1 from the slot of the connection, if the slot has it: changes one row or none. If none, execute
-- slots_to_take_from, and take_from_slot for its slots until one changes a row. No statement takes from several slots: the
-- procedure does.
-- Parameters: amount, {{ name }}, slots, amount
{{ table.update_slot("- ?", own.as_str(), "counter >= ?") }}

-- name: take_on_nodes
-- Parameters: amount, {{ name }}, slots, amount
{{ table.update_slot("- ?", on_nodes.as_str(), "counter >= ?") }}

-- name: slots_to_take_from
-- Parameters: {{ name }}, amount
SELECT counter_id AS slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND counter >= ?
 ORDER BY counter DESC;

-- name: take_from_slot
-- Parameters: amount, {{ name }}, slot, amount
{{ table.update_slot("- ?", "?", "counter >= ?") }}

-- name: get
-- Returns the total as DECIMAL, or NULL if the counter does not exist. Locks no row.
-- Parameters: {{ name }}
SELECT SUM({{ table.count() }}) AS total
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: totals
-- Returns all totals. Reads the whole table.
-- Parameters: none
{{ table.counter_totals() }}

-- name: reset
-- Sets the total to a value of at least 0. If restart is 1, start_date is set to NOW().
-- Parameters: {{ name }}, value, {{ name }}, {{ name }}, restart
{{ table.reset_bounded("?", "?") }}

-- name: delete
-- Deletes the counter. If no row is deleted, the counter does not exist.
-- Parameters: {{ name }}, {{ name }}, {{ name }}, {{ name }}
{{ table.delete_slots() }}

-- To grow a counter, execute grow. To shrink it, execute remove_slot and delete_removed for each slot from the highest to the
-- new number of slots + 1. The total is right at any time. After an error, begin again with the highest slot.

-- name: grow
-- Creates the slots that the counter does not have.
-- Parameters: {{ name }}, slots
{{ table.grow("?") }}

-- name: highest_slot
-- Parameters: {{ name }}
SELECT MAX(counter_id) AS slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: remove_slot
-- Moves the count of a slot, which is not slot 1, to slot 1, and gives the slot the negative of its number, which no statement
-- looks for. Error 1062 means that an earlier call was interrupted: execute delete_removed first.
-- Parameters: {{ name }}, {{ name }}, {{ name }}, slot
{{ table.fold_slot("?") }}

-- name: delete_removed
-- Parameters: {{ name }}, slot
{{ table.delete_folded_slot("?") }}
