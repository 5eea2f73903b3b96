{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,{{ table.key.parameters("IN ") }},
  IN p_value BIGINT
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
{%- if package.options.column.is_none() -%}
Private. Resets, compacts or deletes a record on a node of a cluster, one slot in each statement, starting with the highest, slot 0
  last. Repeats a statement that conflicts with another node. A compaction leaves the slot instead.
{%- else -%}
Private. Resets or deletes a record on a node of a cluster, one slot in each statement, starting with the highest, slot 0 last. Repeats a
  statement that conflicts with another node.
{%- endif -%}
{%- endfilter %}
BEGIN
  DECLARE v_slot BIGINT DEFAULT {{ MAX_SLOTS }} + 1;
  DECLARE v_next BIGINT;
  DECLARE v_tries INT DEFAULT 0;

  REPEAT
    BEGIN
      DECLARE EXIT HANDLER FOR 1213, 3101, 1180
        BEGIN
          SET v_tries = v_tries + 1;
          {% if package.options.column.is_none() %}IF p_routine = {{ r.sibling(R::Compact).name()|sql_string }} THEN
            SET v_slot = v_next;
          ELSEIF{% else %}IF{% endif %} v_tries > {{ STEP_TRIES }} THEN
            RESIGNAL;
          END IF;
          DO SLEEP(0.01);
        END;

      {{ table.over_snapshot()|before(6) }}SELECT COALESCE(MAX(slot), 0)
        INTO v_next
        FROM {{ table.name }}
       WHERE {{ table.key.equals("")|indent(6) }}
         AND slot < v_slot
         AND slot <> 0;
      IF p_routine = {{ r.sibling(R::Delete).name()|sql_string }} THEN
        {{ table.over_snapshot()|before(8) }}DELETE FROM {{ table.name }}
         WHERE {{ table.key.equals("")|indent(8) }}
           AND slot = v_next;
      ELSEIF p_routine = {{ r.sibling(R::Reset).name()|sql_string }} THEN
{%- if package.options.column.is_none() %}
        {{ table.over_snapshot()|before(8) }}UPDATE {{ table.name }}
           SET `count` = IF(slot = 0, COALESCE(p_value, 0), 0)
         WHERE {{ table.key.equals("")|indent(8) }}
           AND slot = v_next;
{%- else %}
        -- A roll-up can have deleted the slot.
        {{ table.over_snapshot()|before(8) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
        SELECT {{ table.key.arguments() }}, v_next, found.share
          FROM (
            SELECT IF(v_next = 0, COALESCE(p_value, 0){{ table.less_column()|indent(12) }}, 0) AS share
          ) AS found
        ON DUPLICATE KEY UPDATE `count` = found.share;
{%- endif %}
{%- if package.options.column.is_none() %}
      ELSEIF v_next > 0 THEN
        -- Moves what the two slots have now, not what was read before: a reset in steps can have emptied the slot.
        {{ table.fold_record(table.first_and("v_next").as_str())|indent(8) }}
        {{ table.over_snapshot()|before(8) }}DELETE FROM {{ table.name }}
         WHERE {{ table.key.equals("")|indent(8) }}
           AND slot = v_next
           AND `count` = 0;
{%- endif %}
      END IF;
      SET v_slot = v_next,
          v_tries = 0;
    END;
  UNTIL v_slot = 0 END REPEAT;
END
