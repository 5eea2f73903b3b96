{%- let of = o.column.as_ref().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(
  {{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Sets the total of a record: slot 0 gets the value less the column, the other slots get 0. The next roll-up moves it.
  Waits for transactions that have locked the slots or the row.{% if o.cluster %}
  Outside of a transaction each slot commits by itself. The node with auto_increment_offset 1 moves slot 0.{% endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record; p_value, the new total; NULL means 0
Errors: 1048 a part of the key is NULL; 1264 p_value is out of range
  1205, 1213 lock wait timeout, deadlock: nothing was changed; in a transaction, repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 100);
{%- endfilter %}
BEGIN{% if o.cluster %}
  CALL {{ sql.routine(R::Steps) }}('reset', {{ sql.key("{p}", ", ") }}, 0);{% endif %}
  CALL {{ sql.routine(R::ReadCommitted) }}();
  {{ sql.exempt(2) }}INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
  SELECT {{ sql.key("{p}", ", ") }}, slots.slot, IF(slots.slot = 0, found.pending, 0)
    FROM (
      SELECT CAST(COALESCE(p_value, 0) AS DECIMAL(20)) - COALESCE((
               SELECT parent.{{ of.column }} FROM {{ of.table }} AS parent WHERE {{ sql.key("parent.{} = {p}", " AND ") }} FOR UPDATE
             ), 0) AS pending
    ) AS found
   CROSS JOIN (
      SELECT 0 AS slot{% if !o.cluster %}
       UNION
      SELECT slot
        FROM (SELECT slot FROM {{ o.table }} WHERE {{ sql.key("{} = {p}", " AND ") }} LIMIT 65536 FOR UPDATE) AS locked{% endif %}
    ) AS slots
   ORDER BY slots.slot
  ON DUPLICATE KEY UPDATE `count` = IF(slots.slot = 0, found.pending, 0);
END
