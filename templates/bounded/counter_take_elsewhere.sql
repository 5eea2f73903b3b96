{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT,
  IN p_total DECIMAL(65, 0),
  OUT p_taken BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Takes from other slots than that of the connection. p_total is a hint: other transactions can have changed the slots since.
  Each attempt is one statement, which locks the rows before it decides. The counts that are left go to slot 1 when
  there are few, so that calls wait for one row instead of searching.
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT;
  DECLARE v_slot BIGINT;
  DECLARE v_other BIGINT;
  DECLARE v_distance BIGINT;
  DECLARE v_tries INT;
  DECLARE v_all BOOLEAN;

  take: BEGIN
    SET p_taken = TRUE;
    {{ table.last_slot("v_slots", "")|indent(4) }}
    SET v_slot = {{ table.slot_of_call()|indent(8) }},
        v_distance = 0,
        v_tries = 3;
    IF p_total - p_amount < {{ FEW }} * v_slots THEN
      -- 1. Few are left: they are in slot 1. If they are not, the next statement also locks slot 1 first.
      {{ table.update_slot("- p_amount", "1", "counter >= p_amount")|indent(6) }}
      IF ROW_COUNT() > 0 THEN
        LEAVE take;
      END IF;
      SET v_tries = 0;
    END IF;

    -- 2. Another slot shares what it has with the slot of the connection. Does not wait: tries three slots, those of this
    --    node of a cluster first.
    WHILE v_tries > 0 DO
      {{ table.over_snapshot()|before(6) }}SELECT MIN({{ table.distance("v_slot", "v_slots")|indent(13) }})
        INTO v_distance
        FROM {{ table.name }}
       WHERE {{ table.key.equals("")|indent(4) }}
         -- A resize can have inserted others since the query of v_slots.
         AND counter_id BETWEEN 1 AND v_slots
         AND counter >= GREATEST(p_amount, p_total DIV (2 * v_slots))
         AND {{ table.distance("v_slot", "v_slots")|indent(11) }} > v_distance;
      SET v_other = 1 + MOD(v_slot - 1 + MOD(v_distance, 100000), v_slots),
          v_tries = IF(v_other IS NULL, 0, v_tries - 1);
      IF v_other IS NOT NULL THEN
        {{ table.over_snapshot()|before(8) }}INSERT INTO {{ table.name }} (counter_name, counter_id, start_date, counter)
        SELECT p_counter_name, slot, NOW(), (total - p_amount + (slot = v_slot)) DIV 2
          FROM (
            SELECT slot,
                   SUM(amount) OVER () AS total,
                   COUNT(*) OVER () AS found
              FROM {{ table.unlocked_pair("v_slot", "v_other")|indent(14) }}
          ) AS pair
         WHERE found = 2
           AND total >= p_amount
        ON DUPLICATE KEY UPDATE counter = (pair.total - p_amount + (pair.slot = v_slot)) DIV 2;
        IF ROW_COUNT() > 0 THEN
          LEAVE take;
        END IF;
      END IF;
    END WHILE;

    -- 3. The slots that no other transaction has locked, then all slots. Few go to slot 1, many are spread over the slots.
    SET v_all = FALSE;
    REPEAT
      {{ table.over_snapshot()|before(6) }}INSERT INTO {{ table.name }} (counter_name, counter_id, start_date, counter)
      SELECT p_counter_name, slot, NOW(), share
        FROM (
          SELECT slot, total, firsts,
                 CASE
                   WHEN total - p_amount >= {{ FEW }} * slots THEN (total - p_amount + slots - number) DIV slots
                   WHEN slot = 1 THEN total - p_amount
                   ELSE 0
                 END AS share
            FROM (
              SELECT slot,
                     SUM(amount) OVER () AS total,
                     COUNT(*) OVER () AS slots,
                     SUM(slot = 1) OVER () AS firsts,
                     ROW_NUMBER() OVER (ORDER BY slot) AS number
                FROM {{ table.gathered_slots()|indent(16) }}
            ) AS summed
        ) AS spread
       WHERE total >= p_amount
         AND firsts = 1
      ON DUPLICATE KEY UPDATE counter = spread.share;
      IF ROW_COUNT() > 0 THEN
        LEAVE take;
      END IF;
      SET v_all = NOT v_all;
    UNTIL NOT v_all END REPEAT;
    SET p_taken = FALSE;
  END take;
END
