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
  Gives a counter that was created with other options the {{ package.options.setup_slots() }} slots of this package. The total does not change, and
  concurrent increments are not lost.
{%- endif %}
  Growing is one statement. Shrinking gives the slots after {{ table.slots_wanted() }} negative numbers, from the highest on, one in each
  statement. The last statements move their counts to slot 1 and delete them.
  On a node of a cluster and outside a transaction, the slots of this node are the first, the counts move to its lowest slot,
  and a statement that conflicts with another node is repeated. If the call fails with 1213, 3101 or 1180, call it on each node,
  and repeat it until a call succeeds.
  A resize waits for transactions that have incremented the counter. If a resize is interrupted (error 1205, KILL, a lost
  connection), the total is correct, and resize_incomplete in {{ package.totals.typed() }} can be 1. A second call completes
  the resize.

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
  CALL {{ r.name.typed() }}('downloads', {% if package.options.per_counter() %}64{% else %}NULL{% endif %});
{%- endfilter %}
BEGIN
  DECLARE v_last BIGINT DEFAULT 0;
  DECLARE v_highest BIGINT;
  DECLARE v_slots BIGINT;
  DECLARE v_first BIGINT;
  DECLARE v_retired BIGINT;
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_filled BOOLEAN DEFAULT FALSE;
  DECLARE v_fold BOOLEAN;
  DECLARE v_done BOOLEAN DEFAULT FALSE;
  DECLARE v_steps BOOLEAN DEFAULT FALSE;
  DECLARE v_tries INT DEFAULT 0;
  DECLARE v_home BIGINT DEFAULT 1;
  DECLARE v_into BIGINT;
  DECLARE v_step BIGINT DEFAULT 1;

  {{ r.check_name()|indent(2) }}
{%- if package.options.per_counter() %}
  {{ r.check_slots("COALESCE(p_slots, 0)")|indent(2) }}
{%- else %}
  IF p_slots <> {{ package.options.setup_slots() }} THEN
    {{ r.signal(E::SlotsFixed)|indent(4) }}
  END IF;
{%- endif %}
  SELECT COUNT(IF(counter_id = 1, 1, NULL)), SUM(IF(counter_id BETWEEN 2 AND {{ table.slots_wanted() }}, 0, counter))
    INTO v_first, v_total
    FROM {{ table.name }}
   WHERE counter_name = p_counter_name;
  IF v_first = 0 THEN
    {{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;
  IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}
  END IF;

  -- Each pass is one step. Under autocommit, it commits by itself. The steps lock slots in the order of increments, or one
  -- slot only.
  {{ table.find_steps()|indent(2) }}
  IF v_steps THEN
    -- Retires the slots of this node first, which other nodes do not write. Those of another node fail until it has retired
    -- them by a call of its own, or this node has applied its last change.
    SET v_home = {{ table.first_slot_of_node() }},
        v_step = {{ table.nodes() }};
  END IF;
  REPEAT
    BEGIN
      {{ table.repeat_step()|indent(6) }}

      SET v_fold = FALSE;
      IF v_last > {{ table.slots_wanted() }} THEN
        -- Retires a slot. It keeps its count, and no increment selects a negative number.
        BEGIN
          -- A resize that was interrupted has left a retired slot with this number.
          DECLARE CONTINUE HANDLER FOR 1062
            SET v_fold = TRUE,
                v_retired = {{ MAX_SLOTS }};
          {{ table.retire_slot("v_last")|indent(10) }}
        END;
        SET v_last = v_last - IF(v_fold, 0, v_step);
      ELSE
        SELECT MIN(counter_id), MAX(counter_id), COUNT(IF(counter_id > 0, 1, NULL)), COUNT(IF(counter_id < 1, 1, NULL))
          INTO v_first, v_highest, v_slots, v_retired
          FROM {{ table.name }}
         WHERE counter_name = p_counter_name;
        IF v_highest IS NULL OR v_highest <> v_last THEN
          -- The snapshot of a transaction may not contain the changes of other sessions. A locking read does. In a transaction,
          -- its lock prevents that another session inserts higher slots. It also waits for increments that have waited for a
          -- slot and found it retired: they lock a lower slot next, and the new slots of this resize could deadlock with them.
          {{ table.last_slot("v_last", "FOR UPDATE")|indent(10) }}
          IF v_last IS NULL OR v_last < 1 THEN
            {{ r.signal(E::UnknownCounter)|indent(12) }}
          END IF;
        END IF;

        IF v_last > {{ table.slots_wanted() }} THEN
          SET v_done = FALSE,
              v_last = v_last - MOD(v_last + v_step - v_home, v_step);
        ELSEIF NOT v_filled AND (v_last < {{ table.slots_wanted() }} OR v_slots < {{ table.slots_wanted() }}) THEN
          {{ table.insert_slots("first.counter_name = p_counter_name
   AND numbers.number > IF(v_slots = v_last, v_last, 1)")|indent(10) }}
          SET v_last = {{ table.slots_wanted() }},
              v_filled = TRUE,
              v_done = v_first = 1;
        ELSE
          -- Another session can have deleted the retired slots of the snapshot.
          {{ table.over_snapshot()|before(10) }}SELECT v_retired * COUNT(*)
            INTO v_retired
            FROM {{ table.name }}
           WHERE counter_name = p_counter_name
             AND counter_id = LEAST(v_first, 0)
            LOCK IN SHARE MODE;
          SET v_fold = v_retired > 0,
              v_done = v_retired = 0;
        END IF;
      END IF;

      IF v_fold THEN
        -- A counter with fewer slots than nodes does not have the lowest slot of each node. Every counter has slot 1.
        SELECT COALESCE(MAX(counter_id), 1)
          INTO v_into
          FROM {{ table.name }}
         WHERE {{ table.key.equals("")|indent(8) }}
           AND counter_id = v_home;
        {{ table.fold(table.retired_slots("v_into", "v_retired"), "v_into")|indent(8) }}

        {{ table.delete_retired("v_retired")|indent(8) }}
      END IF;
      SET v_tries = 0,
          v_step = IF(v_last > {{ table.slots_wanted() }}, v_step, 1);
    END;
  UNTIL v_done END REPEAT;
END
