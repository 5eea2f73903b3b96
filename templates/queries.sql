{{ c.banner() }}
--
-- Every operation as a parameterised statement, for servers and proxies that know no stored routines, and for who wants
-- none. They work on the table of create_tables.sql and can be used side by side with the procedures.
--
-- Tested on MySQL and MariaDB. Vitess (PlanetScale) and TiDB know the same statements; that is not tested. With
-- Vitess, shard the table by the key, so that the rows of one record lie together.
--
{%- if c.random() %}
-- The slot is FLOOR(RAND() * {{ c.slots() }}), 0 to {{ c.last_slot_number() }}. Bare RAND() * {{ c.slots() }} would be rounded, and make one slot more.
{%- else %}
-- The slot is MOD(CONNECTION_ID(), {{ c.slots() }}): a connection keeps to its slot. Where connection ids are not evenly spread
-- (TiDB gives odd ones only), render with --pick random.
{%- endif %}
--
-- What stands before some statements between /*M!110602 and */ is for MariaDB from 11.6.2, which would refuse them (1020)
-- after a SELECT of the same transaction. To every other server it is a comment.
--
-- NULL for a key column is refused by the server (1048), and so is, in strict mode, a key that does not fit (1264, 1406).

-- name: increment
-- Adds 1.
-- Parameters: {{ c.key_names() }}
{{ c.upsert("1", c.slot_number()) }}

-- name: add
-- Adds an amount, which may be negative.
-- Parameters: {{ c.key_names() }}, amount, amount
{{ c.upsert("?", c.slot_number()) }}

-- name: get
-- The total, a DECIMAL; 0 where nothing was ever counted. Takes no lock.
-- Parameters: {{ c.key_names() }}
SELECT COALESCE(SUM({{ c.count_column() }}), 0) AS total
  FROM {{ c.table() }}
 WHERE {{ c.key_is("") }};

-- name: totals
-- All totals. Reads the whole table.
-- Parameters: none
SELECT {{ c.key_columns("\n       ") }},
       COUNT(*) AS slots,
       SUM({{ c.count_column() }}) AS total
  FROM {{ c.table() }}
 GROUP BY {{ c.key_columns("") }};

-- name: reset_first
-- Sets the total, together with reset_rest in one transaction, this one first.
-- Parameters: {{ c.key_names() }}, value, value
{{ c.over_snapshot() }}
INSERT INTO {{ c.table() }} ({{ c.key_columns("") }}, slot, {{ c.count_column() }})
VALUES ({{ c.key_arguments() }}, 0, ?)
ON DUPLICATE KEY UPDATE {{ c.count_column() }} = ?;

-- name: reset_rest
-- Parameters: {{ c.key_names() }}
{{ c.over_snapshot() }}
UPDATE {{ c.table() }}
   SET {{ c.count_column() }} = 0
 WHERE {{ c.key_is("") }}
   AND slot > 0;

-- name: delete
-- Removes the record.
-- Parameters: {{ c.key_names() }}
{{ c.over_snapshot() }}
DELETE FROM {{ c.table() }}
 WHERE {{ c.key_is("") }};

-- To compact a record, also while others count: for each row of compact_slots, in a transaction of its own, add what
-- it has to slot 0 and its negative to its own slot, both with add_to_slot and slot 0 first. Last, compact_rest. The
-- total stays right whatever others do in between, because each transaction adds 0.

-- name: compact_slots
-- Parameters: {{ c.key_names() }}
SELECT slot, {{ c.count_column() }}
  FROM {{ c.table() }}
 WHERE {{ c.key_is("") }}
   AND slot > 0
 ORDER BY slot;

-- name: add_to_slot
-- Parameters: {{ c.key_names() }}, slot, amount, amount
{{ c.upsert("?", "?") }}

-- name: compact_rest
-- Removes what is empty.
-- Parameters: {{ c.key_names() }}
{{ c.over_snapshot() }}
DELETE FROM {{ c.table() }}
 WHERE {{ c.key_is("") }}
   AND slot > 0
   AND {{ c.count_column() }} = 0;
{%- for (rollup, name) in c.package.rollups() %}
{%- let record = c.record(rollup) %}

-- name: {{ rollup.suffix() }}_page
-- Totals to be rolled up, {{ BATCH }} at a time: begin with the least {{ record.name.typed() }}, go on with the last one of the page
-- before. A page of one row is the last.
-- Parameters: {{ record.name.typed() }}
SELECT {{ record.name.typed() }},
       SUM({{ c.count_column() }}) AS total
  FROM {{ c.table() }}
 WHERE {{ c.rollup_same(rollup) }}{{ record.name.typed() }} >= ?
 GROUP BY {{ record.name.typed() }}
 ORDER BY {{ record.name.typed() }}
 LIMIT {{ BATCH }};

-- name: {{ rollup.suffix() }}_write
-- Parameters: total, {{ record.name.typed() }}
UPDATE {{ rollup.table }}
   SET {{ rollup.target.typed() }} = ?
 WHERE {{ rollup.id.typed() }} = ?;
{%- endfor %}
