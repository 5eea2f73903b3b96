{% include "files/_banner.sql" %}
--
-- Every operation as a parameterised statement, for servers and proxies that know no stored routines, and for who wants
-- none. They work on the table of create_tables.sql and can be used side by side with the procedures.
--
-- Tested on MySQL and MariaDB. Vitess (PlanetScale) and TiDB know the same statements; that is not tested. With
-- Vitess, shard the table by the key, so that the rows of one record lie together.
--
{%- if package.options.random() %}
-- The slot is FLOOR(RAND() * {{ table.slots() }}), 0 to {{ table.last_slot_number() }}. Bare RAND() * {{ table.slots() }} would be rounded, and make one slot more.
{%- else %}
-- The slot is MOD(CONNECTION_ID(), {{ table.slots() }}): a connection keeps to its slot. Where connection ids are not evenly spread
-- (TiDB gives odd ones only), render with --pick random.
{%- endif %}
--
-- What stands before some statements between /*M!110602 and */ is for MariaDB from 11.6.2, which would refuse them (1020)
-- after a SELECT of the same transaction. To every other server it is a comment.
--
-- NULL for a key column is refused by the server (1048), and so is, in strict mode, a key that does not fit (1264, 1406).

{%- let slot = table.slot_expression() %}

-- name: increment
-- Adds 1.
-- Parameters: {{ table.key.names() }}
{{ table.upsert("1", slot.as_str()) }}

-- name: add
-- Adds an amount, which may be negative.
-- Parameters: {{ table.key.names() }}, amount, amount
{{ table.upsert("?", slot.as_str()) }}

-- name: get
-- The total, a DECIMAL; 0 where nothing was ever counted. Takes no lock.
-- Parameters: {{ table.key.names() }}
SELECT COALESCE(SUM({{ table.count() }}), 0) AS total
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- name: totals
-- All totals. Reads the whole table.
-- Parameters: none
SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       SUM({{ table.count() }}) AS total
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }};

-- name: reset_first
-- Sets the total, together with reset_rest in one transaction, this one first.
-- Parameters: {{ table.key.names() }}, value, value
{{ table.over_snapshot() }}
INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, {{ table.count() }})
VALUES ({{ table.key.arguments() }}, 0, ?)
ON DUPLICATE KEY UPDATE {{ table.count() }} = ?;

-- name: reset_rest
-- Parameters: {{ table.key.names() }}
{{ table.over_snapshot() }}
UPDATE {{ table.name }}
   SET {{ table.count() }} = 0
 WHERE {{ table.key.equals("") }}
   AND slot > 0;

-- name: delete
-- Removes the record.
-- Parameters: {{ table.key.names() }}
{{ table.over_snapshot() }}
DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};

-- To compact a record, also while others count: for each row of compact_slots, in a transaction of its own, add what
-- it has to slot 0 and its negative to its own slot, both with add_to_slot and slot 0 first. Last, compact_rest. The
-- total stays right whatever others do in between, because each transaction adds 0.

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
-- Removes what is empty.
-- Parameters: {{ table.key.names() }}
{{ table.over_snapshot() }}
DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND slot > 0
   AND {{ table.count() }} = 0;
{%- for rollup in script.rollups() %}

-- name: {{ rollup.model.suffix() }}_page
-- Totals to be rolled up, {{ BATCH }} at a time: begin with the least {{ rollup.record.name.typed() }}, go on with the last one of the page
-- before. A page of one row is the last.
-- Parameters: {{ rollup.record.name.typed() }}
SELECT {{ rollup.record.name.typed() }},
       SUM({{ table.count() }}) AS total
  FROM {{ table.name }}
 WHERE {{ rollup.same_and() }}{{ rollup.record.name.typed() }} >= ?
 GROUP BY {{ rollup.record.name.typed() }}
 ORDER BY {{ rollup.record.name.typed() }}
 LIMIT {{ BATCH }};

-- name: {{ rollup.model.suffix() }}_write
-- Parameters: total, {{ rollup.record.name.typed() }}
UPDATE {{ rollup.model.table }}
   SET {{ rollup.model.target.typed() }} = ?
 WHERE {{ rollup.model.id.typed() }} = ?;
{%- endfor %}
