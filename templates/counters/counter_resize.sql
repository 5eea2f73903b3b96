{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_slots BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
{%- if package.options.per_counter() %}
  Changes the number of slots of a counter. The total does not change, and concurrent increments are not lost.
{%- else %}
  Gives a counter that was created with other options {{ package.options.setup_slots() }} slots. The total does not change, and no increment is lost.
{%- endif %}
{%- if table.bounded() %}
  Growing is one statement. Shrinking removes one slot in each statement, starting with the highest, and moves its count to slot 1.
{%- else %}
  Growing is one statement. Shrinking gives the highest slots negative numbers, one in each statement, then moves their counts.
{%- endif %}
{%- if !table.bounded() %}
  On a node of a cluster and outside a transaction, the slots of this node are the first, and a statement that conflicts with
  another node is repeated. After 1213, 3101 or 1180, call it on each node in turn until a call succeeds.
{%- endif %}
  A resize waits for transactions that have incremented the counter. If a resize is interrupted (error 1205, KILL, a lost
  connection), the total is correct, and resize_incomplete in {{ package.totals.typed() }} can be 1. A second call completes the resize.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
{%- if package.options.per_counter() %}
  p_slots BIGINT: the new number of slots, 1 to {{ MAX_SLOTS }}
{%- else %}
  p_slots BIGINT: NULL or {{ package.options.setup_slots() }}, the number of slots of every counter of this package
{%- endif %}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('{{ r.counter() }}', {% if package.options.per_counter() %}64{% else %}NULL{% endif %});
{%- endfilter %}
{%- let into = table.home() %}
BEGIN
  DECLARE v_first, v_last, v_slots, v_slot, v_retired, v_met BIGINT;
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_done BOOLEAN DEFAULT FALSE;
{%- if !table.bounded() %}
  DECLARE v_steps BOOLEAN;
  DECLARE v_home, v_step BIGINT DEFAULT 1;
  DECLARE v_passes, v_tries INT DEFAULT 0;
{%- else %}
  DECLARE v_passes INT DEFAULT 0;
{%- endif %}

{%- if package.options.per_counter() %}
  CALL {{ r.sibling(R::CheckSlots) }}({{ r.speaker_text() }}, p_slots);
{%- else %}
  IF p_slots <> {{ package.options.setup_slots() }} THEN
    {{ r.signal(E::SlotsFixed)|indent(4) }}
  END IF;
{%- endif %}
  CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
  {{ table.over_snapshot()|before(2) }}SELECT SUM(IF(counter_id BETWEEN 2 AND {{ table.slots_wanted() }}, 0, counter))
    INTO v_total
    FROM {{ table.name }}
   WHERE {{ table.key.equals("") }};
  IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}
  END IF;
{%- if !table.bounded() %}
  CALL {{ r.sibling(R::InSteps) }}(v_steps);
  IF v_steps THEN
    -- The first pass removes the slots of this node, which other nodes do not change.
    SET v_step = {{ table.nodes() }},
        v_home = 1 + MOD({{ table.node() }}, LEAST({{ table.nodes() }}, {{ table.slots_wanted() }}));
  END IF;
{%- endif %}
  REPEAT
    BEGIN
      -- A resize that was interrupted or runs at the same time has left a retired slot of the same number. The next pass tries again.
      DECLARE CONTINUE HANDLER FOR 1062
        SET v_met = v_met + 1;
{%- if !table.bounded() %}
      -- A conflict with another node.
      DECLARE EXIT HANDLER FOR 1213, 3101, 1180
        BEGIN
          SET v_tries = v_tries + 1;
          IF NOT v_steps OR v_tries > {{ STEP_TRIES }} THEN
            RESIGNAL;
          END IF;
          DO SLEEP(0.01);
        END;
{%- endif %}

      -- A locking read, because the snapshot of a transaction can have other slots. It also waits for increments that have
      -- not found their slot and go on to lower ones: the new slots of this resize could deadlock with them.
      {{ table.last_slot("v_last", "FOR UPDATE")|indent(6) }}
      SET v_slot = v_last{% if !table.bounded() %} - MOD(v_last + v_step - v_home, v_step){% endif %},
          v_met = 0;
      WHILE v_slot > {{ table.slots_wanted() }} DO
{%- if table.bounded() %}
        {{ table.remove_slot("v_slot")|indent(8) }}
{%- else %}
        {{ table.retire_slot("v_slot")|indent(8) }}
{%- endif %}
{%- if !table.bounded() %}
        SET v_tries = IF(ROW_COUNT() > 0, 0, v_tries);
{%- endif %}
        SET v_slot = v_slot - {{ table.step() }};
      END WHILE;
      {{ table.over_snapshot()|before(6) }}SELECT MIN(counter_id), MAX(counter_id), COUNT(IF(counter_id > 0, 1, NULL)), GREATEST(v_met, COUNT(IF(counter_id < 1, 1, NULL)))
        INTO v_first, v_slot, v_slots, v_retired
        FROM {{ table.name }}
       WHERE {{ table.key.equals("") }};
      IF v_retired > 0 THEN
{%- if !table.bounded() %}
        {{ table.fold(into, "v_retired")|indent(8) }}
{%- endif %}
        {{ table.delete_retired("v_retired")|indent(8) }}
        SET v_first = IF(ROW_COUNT() = v_retired, 1, v_first);
      END IF;
      IF v_last < {{ table.slots_wanted() }} OR v_slots < {{ table.slots_wanted() }} THEN
        {{ table.insert_slots("slot_1.counter_name = p_counter_name
   AND number > IF(v_slots = v_last, v_last, 1)")|indent(8) }}
      END IF;
      -- The snapshot can differ from what the statements change: three passes are enough. NULL: the counter was deleted.
      SET v_passes = v_passes + 1,
{%- if !table.bounded() %}
          v_step = 1,
{%- endif %}
          v_done = COALESCE(v_first = 1 AND {{ table.slots_wanted() }} = v_slot AND {{ table.slots_wanted() }} = v_slots OR v_passes > 2 AND v_last <= {{ table.slots_wanted() }}, TRUE);
    END;
  UNTIL v_done END REPEAT;
END
