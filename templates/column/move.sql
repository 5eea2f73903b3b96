{%- import "macros.sql" as m -%}
{%- let of = o.column.as_ref().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(
  {{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_records INT,
  IN p_wait BOOLEAN,
  OUT p_rejected VARCHAR(512) CHARACTER SET utf8mb4
)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. One UPDATE moves the pending counts of p_records records from this one on, and skips what is locked.
  With 1, those of this record: waits for the row, with p_wait for the slots. p_rejected: why the row rejects the total.'
BEGIN
  -- What a total can be rejected with. All other errors end the call: locks, KILL, privileges, missing objects.
  DECLARE EXIT HANDLER FOR NOT FOUND, SQLSTATE '22001', SQLSTATE '22003', SQLSTATE '22012', SQLSTATE '23000', SQLSTATE '45000', 1526
  {%- if !o.mariadb() %}, 3819{% endif %}
    GET DIAGNOSTICS CONDITION 1 p_rejected = MESSAGE_TEXT;
  DECLARE EXIT HANDLER FOR 1048 SET p_rejected = 'a trigger has changed the value';

{% if !o.mariadb() %}  IF LOCATE('hypergraph_optimizer=on', @@SESSION.optimizer_switch) THEN
    -- It reads rows before it locks them, and would move counts twice. Not SQLSTATE 45000, which is a rejected total.
    SIGNAL SQLSTATE '0A000' SET MYSQL_ERRNO = 30022, MESSAGE_TEXT = 'the roll-up needs hypergraph_optimizer=off';
  END IF;
{% endif %}  CALL {{ sql.routine(R::ReadCommitted) }}();
  {%- if o.mariadb() %}
  -- MariaDB crashes if an UPDATE of two tables waits for a RENAME. With lock_wait_timeout=0 it fails at once (1205).
  {%- endif %}
  IF p_records > 1 THEN
  {%- if !o.mariadb() && !o.keep.0.is_empty() %}
    -- In local time, a TIMESTAMP of the hour that occurs twice in autumn would not be kept.
  {%- endif %}
    {{ sql.set("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF, lock_wait_timeout=0, join_cache_level=0, max_seeks_for_key=1", 4) -}}
    UPDATE{% if !o.mariadb() %} /*+ NO_BNL(){% if !o.keep.0.is_empty() %} SET_VAR(time_zone = '+00:00'){% endif %} */{% endif %} (
      SELECT {{ sql.key("slots.{}", ", ") }}, slots.slot, slots.`count` AS pending,
             SUM(slots.`count`) OVER (PARTITION BY {{ sql.key("slots.{}", ", ") }}) AS total
        FROM (SELECT DISTINCT {{ sql.key("{}", ", ") }} FROM {{ o.table }} WHERE `count` <> 0 AND {% for column in o.key.0 -%}
             {%- let (name, parameter) = (column.name.typed(), column.parameter.typed()) -%}
             {%- if loop.last %}{{ name }} >= {{ parameter }}{% else %}({{ name }} > {{ parameter }} OR {{ name }} = {{ parameter }} AND {% endif -%}
             {%- endfor %}{% for _ in o.key.0.iter().skip(1) %}){% endfor %}{{ m::own(o, "slot") }}
               ORDER BY {{ sql.key("{}", ", ") }} LIMIT p_records FOR UPDATE SKIP LOCKED) AS batch
       STRAIGHT_JOIN {{ o.table }} AS slots FORCE INDEX (PRIMARY) ON {{ sql.key("slots.{} = batch.{}", " AND ") }}
       STRAIGHT_JOIN {{ of.table }} AS parent ON {{ sql.key("parent.{} = slots.{}", " AND ") }}
       WHERE slots.`count` <> 0{{ m::own(o, "slots.slot") }}
         FOR UPDATE SKIP LOCKED
    ) AS moved
     STRAIGHT_JOIN {{ of.table }} AS parent ON {{ sql.key("parent.{} = moved.{}", " AND ") }}
     STRAIGHT_JOIN {{ o.table }} AS slots FORCE INDEX (PRIMARY) ON {{ sql.key("slots.{} = moved.{}", " AND ") }} AND slots.slot = moved.slot
       SET parent.{{ of.column }} = COALESCE(parent.{{ of.column }}, 0) + moved.total,
{%- for name in o.keep.0 %}
           parent.{{ name }} = parent.{{ name }},
{%- endfor %}
           slots.`count` = slots.`count` - moved.pending;
  ELSE
    -- The row is the first table: it is locked first, and what it has accepted decides about the slots.
    {{ sql.set("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF, lock_wait_timeout=0, join_cache_level=0", 4) -}}
    UPDATE {{ of.table }} AS parent
     STRAIGHT_JOIN (
       SELECT slot, pending, SUM(pending) OVER () + COALESCE((
                SELECT parent.{{ of.column }} FROM {{ of.table }} AS parent WHERE {{ sql.key("parent.{} = {p}", " AND ") }} FOR UPDATE
              ), 0) AS total
         FROM (
           (SELECT slot, `count` AS pending FROM {{ o.table }}
             WHERE {{ sql.key("{} = {p}", " AND ") }} AND `count` <> 0 AND NOT p_wait{{ m::own(o, "slot") }} FOR UPDATE SKIP LOCKED) UNION ALL
           (SELECT slot, `count` FROM {{ o.table }}
             WHERE {{ sql.key("{} = {p}", " AND ") }} AND `count` <> 0 AND p_wait{{ m::own(o, "slot") }} FOR UPDATE)
         ) AS locked
     ) AS moved
     STRAIGHT_JOIN {{ o.table }} AS slots FORCE INDEX (PRIMARY) ON {{ sql.key("slots.{} = {p}", " AND ") }} AND slots.slot = moved.slot
       SET parent.{{ of.column }} = moved.total,
{%- for name in o.keep.0 %}
           parent.{{ name }} = parent.{{ name }},
{%- endfor %}
           -- NULL is error 1048: a trigger has changed the value.
           slots.`count` = IF(parent.{{ of.column }} = moved.total, slots.`count` - moved.pending, NULL)
     WHERE {{ sql.key("parent.{} = {p}", " AND ") }};
  END IF;
END
