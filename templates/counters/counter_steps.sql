{{ r.create_as("PROCEDURE") }}(
  IN p_routine VARCHAR({{ IDENT_MAX }}) CHARACTER SET utf8mb4,
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_value BIGINT,
  IN p_restart BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Resets or deletes a counter on a node of a cluster, one slot in each statement, starting with the highest. Repeats a statement
  that conflicts with another node. The lowest slots of the nodes are the last: a resize can move counts into them meanwhile.
{%- endfilter %}
BEGIN
  DECLARE v_slot, v_next BIGINT DEFAULT {{ MAX_SLOTS }} + 1;
  DECLARE v_tries INT DEFAULT 0;

  REPEAT
    BEGIN
      DECLARE EXIT HANDLER FOR 1213, 3101, 1180
        BEGIN
          SET v_tries = v_tries + 1;
          IF v_tries > {{ STEP_TRIES }} THEN
            RESIGNAL;
          END IF;
          DO SLEEP(0.01);
        END;

      {{ table.over_snapshot()|before(6) }}SELECT COALESCE(
               MAX(IF(counter_id BETWEEN 1 AND {{ table.nodes() }}, NULL, counter_id)),
               MAX(IF(counter_id BETWEEN 1 AND {{ table.nodes() }}, counter_id, NULL)),
               1)
        INTO v_next
        FROM {{ table.name }}
       WHERE {{ table.key.equals("") }}
         AND IF(v_slot BETWEEN 1 AND {{ table.nodes() }},
                counter_id BETWEEN 1 AND v_slot - 1,
                counter_id < v_slot OR counter_id BETWEEN 1 AND {{ table.nodes() }});
      IF p_routine = {{ r.sibling(R::Delete).name()|sql_string }} THEN
        -- With slot 1, also the slots that a resize has inserted meanwhile.
        {{ table.over_checks()|before(8) }}DELETE FROM {{ table.name }}
         WHERE {{ table.key.equals("") }}
           AND counter_id BETWEEN IF(v_next = 1, -{{ MAX_SLOTS }}, v_next) AND IF(v_next = 1, {{ MAX_SLOTS }}, v_next);
      ELSE
        {{ table.over_snapshot()|before(8) }}UPDATE {{ table.name }}
           SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
               start_date = IF(p_restart, NOW(), start_date)
         WHERE {{ table.key.equals("") }}
           AND counter_id = v_next;
      END IF;
      IF ROW_COUNT() = 0 AND v_next = 1 THEN
        CALL {{ r.sibling(R::Unknown) }}(p_routine, p_counter_name);
      END IF;
      SET v_slot = v_next,
          v_tries = 0;
    END;
  UNTIL v_slot = 1 END REPEAT;
END
