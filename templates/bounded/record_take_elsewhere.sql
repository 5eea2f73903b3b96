{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT,
  IN p_slot BIGINT,
  IN p_autocommit BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. A take whose slot, p_slot, has less than the amount. p_autocommit: outside a transaction. Each way to the amount is one
  statement that decides by rows that it has locked. The counts that are left go to slot 0 when there are few, so that calls
  wait for one row instead of searching.
{%- endfilter %}
BEGIN
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_slots BIGINT;
  DECLARE v_first BIGINT;
  DECLARE v_guard BIGINT;
  DECLARE v_other BIGINT;
  DECLARE v_distance BIGINT;
  DECLARE v_tries INT;
  DECLARE v_all BOOLEAN;
  DECLARE v_tried BOOLEAN DEFAULT FALSE;

  IF p_amount IS NULL OR p_amount < 1 THEN
    {{ r.signal(E::AmountNotPositive)|indent(4) }}
  END IF;

  take: LOOP
    -- A hint where to look. Other transactions can have changed the slots since.
    {{ table.over_snapshot()|before(4) }}SELECT COALESCE(SUM(`count`), 0), COUNT(*), MAX(IF(slot = 0, `count`, NULL)), MAX(IF(slot = p_slot, slot, 0))
      INTO v_total, v_slots, v_first, v_guard
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }};
    IF v_tried OR v_total < p_amount THEN
      CALL {{ r.sibling(R::Reject) }}({{ table.key.arguments() }}, p_amount, v_total, v_first IS NOT NULL, p_autocommit);
    END IF;

    -- At REPEATABLE READ, SKIP LOCKED keeps a lock on the gap after a slot that it skips. Whoever holds slot 0 inserts slots there.
    SET v_distance = -1,
        v_tries = IF(p_autocommit, 3, 0);
    IF v_first IS NULL OR v_total - p_amount < {{ FEW }} * v_slots THEN
      -- 1. Few are left: they are in slot 0.
      IF v_first >= p_amount THEN
        {{ table.take_slot("p_amount", "0")|indent(8) }};
        IF ROW_COUNT() > 0 THEN
          LEAVE take;
        END IF;
      END IF;
      SET v_tries = 0;
    END IF;

    -- 2. Outside a transaction, another slot shares what it has with the slot of the connection. Does not wait: tries three
    --    slots, those of this node of a cluster first. Whoever inserts the slot of the connection holds slot 0, too.
    WHILE v_tries > 0 DO
      {{ table.over_snapshot()|before(6) }}SELECT MIN({{ table.distance("p_slot", table.all_numbers())|indent(13) }})
        INTO v_distance
        FROM {{ table.name }}
       WHERE {{ table.key.equals("")|indent(6) }}
         AND slot <> p_slot
         AND `count` >= GREATEST(p_amount, v_total DIV (2 * v_slots))
         AND {{ table.distance("p_slot", table.all_numbers())|indent(11) }} > v_distance;
      SET v_other = MOD(p_slot + MOD(v_distance, 100000), {{ table.all_numbers() }}),
          v_tries = IF(v_other IS NULL, 0, v_tries - 1);
      IF v_other IS NOT NULL THEN
        {{ table.over_snapshot()|before(8) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
        SELECT {{ table.key.arguments() }}, IF(own, p_slot, v_other), (have - p_amount + own) DIV 2
          FROM (
            SELECT MAX(IF(slot = v_other, amount, NULL)) AS have,
                   COUNT(*) AS found
              FROM {{ table.unlocked_pair("v_other", "v_guard")|indent(14) }}
          ) AS pair
         CROSS JOIN (SELECT 0 AS own UNION ALL SELECT 1) AS sides
         WHERE found = 2
           AND have >= p_amount
        ON DUPLICATE KEY UPDATE
          `count` = (pair.have - p_amount + sides.own) DIV 2 + IF(sides.own, {{ table.name }}.`count`, 0);
        IF ROW_COUNT() > 0 THEN
          LEAVE take;
        END IF;
      END IF;
    END WHILE;

    -- 3. The slots that no other transaction has locked, then all slots. Few go to slot 0, many are spread over the slots and
    --    that of the connection. If the record has no slot 0, all slots are locked and slot 0 is inserted.
    SET v_all = v_first IS NULL;
    REPEAT
      {{ table.over_snapshot()|before(6) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
      SELECT {{ table.key.arguments() }}, slot, share
        FROM (
          SELECT slot, total, found,
                 CASE
                   WHEN total - p_amount >= {{ FEW }} * slots THEN (total - p_amount + slots - number) DIV slots
                   WHEN slot = 0 THEN total - p_amount
                   ELSE 0
                 END AS share
            FROM (
              SELECT slot,
                     MAX(locked) AS found,
                     SUM(SUM(amount)) OVER () AS total,
                     COUNT(*) OVER () AS slots,
                     ROW_NUMBER() OVER (ORDER BY slot) AS number
                FROM (
                  (SELECT slot, `count` AS amount, 1 AS locked
                     FROM {{ table.name }}
                    WHERE {{ table.key.equals("")|indent(19) }}
                      AND slot = 0
                      AND v_first IS NOT NULL
                      FOR UPDATE)
                  UNION ALL
                  (SELECT slot, `count` AS amount, 1 AS locked
                     FROM {{ table.name }}
                    WHERE {{ table.key.equals("")|indent(19) }}
                      AND slot > 0
                      AND NOT v_all
                    ORDER BY slot DESC
                    LIMIT {{ MAX_SLOTS }}
                      FOR UPDATE SKIP LOCKED)
                  UNION ALL
                  (SELECT slot, `count` AS amount, 1 AS locked
                     FROM {{ table.name }}
                    WHERE {{ table.key.equals("")|indent(19) }}
                      AND slot >= IF(v_first IS NULL, 0, 1)
                      AND v_all
                    ORDER BY slot DESC
                    LIMIT {{ MAX_SLOTS + 1 }}
                      FOR UPDATE)
                  UNION ALL
                  (SELECT 0, 0, 0)
                  UNION ALL
                  (SELECT p_slot, 0, 0 FROM DUAL WHERE v_first IS NOT NULL)
                ) AS parts
               GROUP BY slot
            ) AS summed
        ) AS spread
       WHERE total >= p_amount
         AND (found OR share > 0 OR slot = 0)
      ON DUPLICATE KEY UPDATE `count` = spread.share + IF(spread.found, 0, {{ table.name }}.`count`);
      IF ROW_COUNT() > 0 THEN
        LEAVE take;
      END IF;
      SET v_all = NOT v_all;
    UNTIL NOT v_all OR v_first IS NULL END REPEAT;
    SET v_tried = TRUE;
  END LOOP;
END
