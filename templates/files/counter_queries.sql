{% include "files/_queries.sql" %}
{%- let slot = table.slot_expression() %}
{%- let name = table.key.names() %}

-- name: setup
-- Creates a counter. If the counter exists, the server returns error 1062.
-- Parameters: {{ name }}, description, value{% if package.options.per_counter() %}, slots{% endif %}
{{ table.create_counter(table.most_slots(), table.slots(), "?", "?") }}
{%- if package.options.per_counter() %}

-- name: slots
-- Returns the number of slots that increment and add select from, or NULL if the counter does not exist. An application can
-- keep the number: after a resize, the statements are exact with the earlier number, too.
-- Parameters: {{ name }}
{%- if package.options.random() %}
SELECT MAX(counter_id) AS slots
{%- else %}
SELECT {{ table.usable_slots("MAX(counter_id)")|indent(7) }} AS slots
{%- endif %}
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};
{%- endif %}

-- name: increment
-- Adds 1.
{%- if package.options.per_counter() %}
-- If no row is changed, the counter has fewer slots now: execute the statement again with 1 as the number of slots, on a
-- cluster first with {{ table.nodes() }}. If no row is changed with 1, the counter does not exist.
{%- else %}
-- If no row is changed, the counter does not exist, or it was created with fewer slots: source resize.sql.
{%- endif %}
{%- if package.options.random() %}
-- The parameter random is a random number from 0 to less than 1. The server would evaluate RAND() for each row.
{%- endif %}
-- Parameters: {{ name }}{% if package.options.random() %}, random{% endif %}{% if package.options.per_counter() %}, slots{% endif %}
{{ table.update_slot("+ 1", slot.as_str(), "") }}

-- name: add
-- Adds an amount, which may be negative. An amount of 0 changes no row. Otherwise, see increment.
-- Parameters: amount, {{ name }}{% if package.options.random() %}, random{% endif %}{% if package.options.per_counter() %}, slots{% endif %}
{{ table.update_slot("+ ?", slot.as_str(), "") }}

-- name: take
-- Takes an amount from the slot of the connection, if the slot has it. Otherwise, no row is changed: execute
-- slots_to_take_from, and take_from_slot for its slots until one has the amount. No statement takes from several slots:
-- counter_take does. These statements require that no slot is negative, so do not subtract with add.
-- Parameters: amount, {{ name }}{% if package.options.random() %}, random{% endif %}{% if package.options.per_counter() %}, slots{% endif %}, amount
{{ table.update_slot("- ?", slot.as_str(), "counter >= ?") }}

-- name: slots_to_take_from
-- Parameters: {{ name }}, amount
SELECT counter_id AS slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND counter_id > 0
   AND counter >= ?
 ORDER BY counter DESC;

-- name: take_from_slot
-- Parameters: amount, {{ name }}, slot, amount
{{ table.update_slot("- ?", "?", "counter >= ?") }}

-- name: add_many_slots
-- The first statement of two that add amounts to many counters: a JSON array of arrays, each with a name and an integer.
-- Returns the arguments of add_many, and the first entry with an unknown counter, or NULL.
-- Parameters: amounts
{{ table.many_slots("?", table.slot_of_found().as_str(), "", "") }}

-- name: add_many
-- Adds the amounts if all slots exist. Otherwise, no row is changed: execute add_many_slots again. During a resize on a cluster,
-- replace each slot of the amounts with 1 + MOD(slot - 1, {{ table.nodes() }}).
-- Parameters: amounts, counters
{{ table.update_many("?", "entries.slot", "?") }}

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
-- Sets the total. If restart is 1, start_date is set to NOW().
-- Parameters: {{ name }}, {{ name }}, {{ name }}, value, restart, {{ name }}
{{ table.reset("?", "?") }}

-- name: delete
-- Deletes the counter. If no row is deleted, the counter does not exist.
-- Parameters: {{ name }}, {{ name }}, {{ name }}, {{ name }}
{{ table.delete_slots() }}
{%- if package.options.per_counter() %}

-- To grow a counter, execute grow. To shrink it, execute retire_slot for each slot from the highest to the new number of
-- slots + 1, then fold and delete_folded with the number of retired slots. The total is correct at any time. After an error,
-- begin again with the highest slot, and with 10000 as the number of retired slots.

-- name: grow
-- Creates the slots that the counter does not have.
-- Parameters: {{ name }}, slots
{{ table.insert_slots("first.counter_name = ?
   AND numbers.number > 1") }}

-- name: highest_slot
-- Parameters: {{ name }}
SELECT MAX(counter_id) AS slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: retire_slot
-- Gives a slot a negative number, which increment and add do not select. Error 1062 means that an earlier slot of this
-- number is retired: execute fold and delete_folded first.
-- Parameters: {{ name }}, slot
{{ table.retire_slot("?") }}

-- name: fold
-- Moves the counts of the retired slots to slot 1.
-- Parameters: {{ name }}, {{ name }}, retired, {{ name }}
{{ table.fold(table.retired_slots("1", "?"), "1") }}

-- name: delete_folded
-- Parameters: {{ name }}, retired
{{ table.delete_retired("?") }}
{%- endif %}
