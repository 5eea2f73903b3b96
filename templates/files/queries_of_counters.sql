{% import "macros.sql" as m -%}
{%- macro slot_parameters(o) -%}
{%- if o.per_counter() %}, slots{% if o.cluster %}, slots, slots{% endif %}{% endif -%}
{%- endmacro -%}
{%- macro where_slot(sql, o) %}
 WHERE counter_name = ? AND counter_id = {{ m::slot(o, "1 + ", sql.slots("?")) }}
{%- endmacro -%}
{{ sql.banner() }}
-- Prepared statements for servers without routines (after create_tables.sql), or for speed.
-- They mix with calls, except as said here.
{%- if o.mariadb() %}
-- Without SET STATEMENT, MariaDB 11.8 rejects rows that have changed since the first SELECT of the transaction (1020).
{%- endif %}
{%- if o.per_counter() %}
-- In one transaction, use one number of slots for a counter, and no calls for it: a transaction that holds two slots
-- of a counter can deadlock with another (1213).{% endif %}
-- Setup, reset, resize and delete go by the routines.
{%- if o.per_counter() %}

-- name: slots
-- The number of slots for the other statements, or NULL for an unknown counter. Keep it in the application.
-- Parameters: counter_name
SELECT MAX(counter_id) AS slots
  FROM {{ o.table }}
 WHERE counter_name = ?;{% endif %}

-- name: increment
{%- if o.per_counter() %}
-- If no row is changed, use 1 as the number of slots, and read the number again. No row with 1: unknown counter.
{%- else %}
-- If no row is changed, CALL {{ sql.routine(R::Increment).name() }}: the slot or the counter does not exist.{% endif %}
-- Parameters: counter_name{{ slot_parameters(o) }}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
UPDATE {{ o.table }}
   SET counter = counter + 1
{{- where_slot(sql, o) }};

-- name: add
{%- if o.is_bounded() %}
-- An amount below 0 fails if the slot has less: use take.{% endif %}
-- An amount of 0 changes no row. Otherwise as increment.
-- Parameters: amount, counter_name{{ slot_parameters(o) }}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
UPDATE {{ o.table }}
   SET counter = counter + ?
{{- where_slot(sql, o) }};
{%- if let Some(take) = package.routine(R::Take) %}

-- name: take
-- Takes from one slot. If no row is changed, CALL {{ take.name() }}, which takes from all slots.
-- Parameters: amount, counter_name{{ slot_parameters(o) }}, amount
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
UPDATE {{ o.table }}
   SET counter = counter - ?
{{- where_slot(sql, o) }}
   AND counter >= ?;{% endif %}

-- name: get
-- NULL for an unknown counter. Locks no row.
-- Parameters: counter_name
SELECT SUM(counter) AS total
  FROM {{ o.table }}
 WHERE counter_name = ? AND counter_id > 0;

-- name: totals
-- Parameters: none
SELECT counter_name, SUM(counter) AS total
  FROM {{ o.table }}
 WHERE counter_id > 0
 GROUP BY counter_name;
