{% include "files/_queries.sql" %}
{%- let name = table.key.names() %}
{%- let slots = table.slots_parameter() %}
{%- let bounded = package.options.bounded %}

-- name: setup
-- Creates a counter. If the counter exists, the server returns error 1062.{% if bounded %} The value is at least 0.{% endif %}
-- Parameters: {{ name }}, description, value{{ slots }}
{{ table.create_counter(table.most_slots(), table.slots(), "?", "?") }}
{%- if package.options.per_counter() %}

-- name: slots
-- Returns the number of slots for the other statements, or NULL if the counter does not exist. An application can keep the
-- number: after a resize, the statements are exact with the earlier number, too.
-- Parameters: {{ name }}
{%- if package.options.random() %}
SELECT MAX(counter_id) AS slots
{%- else %}
SELECT {{ table.usable_slots("MAX(counter_id)")|indent(7) }} AS slots
{%- endif %}
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};
{%- endif %}
{%- for (suffix, servers, slot) in table.plain_slots() %}

-- name: increment{{ suffix }}
-- Adds 1{{ servers }}.
{%- if package.options.per_counter() %} If no row is changed, the counter has fewer slots now: execute the statement again with 1 as the number of
-- slots, on a cluster first with {{ table.nodes() }}. If no row is changed with 1, the counter does not exist.
{%- else %} If no row is changed, the counter does not exist, or it was created with fewer slots: source resize.sql.
{%- endif %}
{%- if package.options.random() %}
-- The parameter random is a random number from 0 to less than 1. The server would evaluate RAND() for each row.
{%- endif %}
-- Parameters: {{ name }}{{ table.random_parameter() }}{{ slots }}
{{ table.update_slot("+ 1", slot, "") }}

-- name: add{{ suffix }}
{%- if bounded %}
-- Adds an amount of at least 1{{ servers }}. Otherwise, see increment.
{%- else %}
-- Adds an amount, which may be negative{{ servers }}. An amount of 0 changes no row. Otherwise, see increment.
{%- endif %}
-- Parameters: amount, {{ name }}{{ table.random_parameter() }}{{ slots }}
{{ table.update_slot("+ ?", slot, "") }}
{%- if bounded %}

-- name: take{{ suffix }}
-- Takes an amount of at least 1 from the slot of the connection, if the slot has it{{ servers }}: changes one row or none. If none,
-- execute slots_to_take_from, and take_from_slot for its slots until one changes a row. No statement takes from several slots:
-- the procedure does.
-- Parameters: amount, {{ name }}{{ slots }}, amount
{{ table.update_slot("- ?", slot, "counter >= ?") }}
{%- endif %}
{%- endfor %}
{%- if bounded %}

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
{%- else %}

-- name: add_many_slots
-- The first statement of two that add amounts to many counters: a JSON array of arrays, each with a name and an integer.
-- Returns the arguments of add_many, and 1 if a counter does not exist.
-- Parameters: amounts
{{ table.many_slots("CONVERT(? USING utf8mb4)", "") }}

-- name: add_many
-- Adds the amounts if all slots exist. Otherwise, no row is changed: execute both again. If no row is changed again, as during a resize on
-- a cluster and in a transaction whose snapshot is older than a resize, replace each slot of the amounts with 1 + MOD(slot - 1, {{ table.nodes() }}).
-- Parameters: amounts, counters
{{ table.update_many("CONVERT(? USING utf8mb4)", "entries.slot", "?") }}
{%- endif %}

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
-- Sets the total{% if bounded %} to a value of at least 0{% endif %}. If restart is 1, start_date is set to NOW().
-- Parameters: {{ name }}, value, {{ name }}, {{ name }}, {{ name }}, restart
{{ table.reset_upsert("?", "?") }}

-- name: delete
-- Deletes the counter. If no row is deleted, the counter does not exist.
-- Parameters: {{ name }}, {{ name }}, {{ name }}, {{ name }}
{{ table.delete_slots() }}
{%- if package.options.per_counter() %}

-- To grow a counter, execute grow. To shrink it, execute {% if bounded %}remove_slot{% else %}retire_slot{% endif %} for each slot from the highest to the new number of
-- slots + 1, then {% if !bounded %}fold and {% endif %}delete_retired with the number of these slots. The total is right at any time. After an error, begin
-- again with the highest slot, and with {{ MAX_SLOTS }} as the number of slots.

-- name: grow
-- Creates the slots that the counter does not have.
-- Parameters: {{ name }}, slots
{{ table.insert_slots("slot_1.counter_name = ?
   AND number > 1") }}

-- name: highest_slot
-- Parameters: {{ name }}
SELECT MAX(counter_id) AS slot
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};
{%- if bounded %}

-- name: remove_slot
-- The slot is not slot 1. Error 1062 means that an earlier call was interrupted: execute delete_retired first.
-- Parameters: {{ name }}, {{ name }}, {{ name }}, slot
{{ table.remove_slot("?") }}
{%- else %}

-- name: retire_slot
-- Error 1062 means that an earlier slot of this number is retired: execute fold and delete_retired first.
-- Parameters: {{ name }}, slot
{{ table.retire_slot("?") }}

-- name: fold
-- Moves the counts of the retired slots to slot 1.
-- Parameters: {{ name }}, {{ name }}, {{ name }}, retired
{{ table.fold("1", "?") }}
{%- endif %}

-- name: delete_retired
-- Parameters: {{ name }}, retired
{{ table.delete_retired("?") }}
{%- endif %}
