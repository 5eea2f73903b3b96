{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT,
  IN p_slot BIGINT,
  IN p_autocommit BOOLEAN,
  IN p_total DECIMAL(65, 0),
  IN p_slots BIGINT,
  IN p_first BIGINT,
  IN p_guard BIGINT,
  OUT p_taken BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Takes from other slots than that of the connection, p_slot. p_autocommit: outside a transaction. The hints: the total, the
  number of slots, the count of slot 0 and the slot whose lock keeps other connections from inserting p_slot. Other transactions can
  have changed the slots since. Each attempt is one statement, which locks the rows before it decides. The counts that are
  left go to slot 0 when there are few, so that calls wait for one row instead of searching.
{%- endfilter %}
BEGIN
  DECLARE v_other BIGINT;
  DECLARE v_distance BIGINT DEFAULT -1;
  DECLARE v_tries INT;
  DECLARE v_all BOOLEAN;

  take: BEGIN
    SET p_taken = TRUE;
    -- At REPEATABLE READ, SKIP LOCKED keeps a lock on the gap after a slot that it skips. Whoever holds slot 0 inserts slots there.
    SET v_tries = IF(p_autocommit, 3, 0);
    IF p_first IS NULL OR p_total - p_amount < {{ FEW }} * p_slots THEN
      -- 1. Few are left: they are in slot 0.
      IF p_first >= p_amount THEN
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
         AND slot < {{ table.all_numbers() }}
         AND slot <> p_slot
         AND `count` >= GREATEST(p_amount, p_total DIV (2 * p_slots))
         AND {{ table.distance("p_slot", table.all_numbers())|indent(11) }} > v_distance;
      SET v_other = MOD(p_slot + MOD(v_distance, 100000), {{ table.all_numbers() }}),
          v_tries = IF(v_other IS NULL, 0, v_tries - 1);
      IF v_other IS NOT NULL THEN
        -- LIMIT makes one derived table of the joined ones: MySQL 9.7 with hypergraph_optimizer assigns the own of another row otherwise.
        {{ table.over_snapshot()|before(8) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
        SELECT {{ table.key.arguments() }}, IF(own, p_slot, v_other), share
          FROM (
            SELECT own,
                   (have - p_amount + own) DIV 2 AS share
              FROM (
                SELECT MAX(IF(slot = v_other, amount, NULL)) AS have,
                       COUNT(*) AS found
                  FROM {{ table.unlocked_pair("v_other", "p_guard")|indent(18) }}
              ) AS pair
             CROSS JOIN (SELECT 0 AS own UNION ALL SELECT 1) AS sides
             WHERE found = 2
               AND have >= p_amount
             LIMIT 2
          ) AS shares
        ON DUPLICATE KEY UPDATE `count` = shares.share + IF(shares.own, {{ table.name }}.`count`, 0);
        IF ROW_COUNT() > 0 THEN
          LEAVE take;
        END IF;
      END IF;
    END WHILE;

    -- 3. The slots that no other transaction has locked, then all slots. Few go to slot 0, many are spread over the slots and
    --    that of the connection. If the record has no slot 0, all slots are locked and slot 0 is inserted.
    SET v_all = p_first IS NULL;
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
                      AND p_first IS NOT NULL
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
                      AND slot >= IF(p_first IS NULL, 0, 1)
                      AND v_all
                    ORDER BY slot DESC
                    LIMIT {{ MAX_SLOTS + 1 }}
                      FOR UPDATE)
                  UNION ALL
                  (SELECT 0, 0, 0)
                  UNION ALL
                  (SELECT p_slot, 0, 0 FROM DUAL WHERE p_first IS NOT NULL)
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
    UNTIL NOT v_all OR p_first IS NULL END REPEAT;
    SET p_taken = FALSE;
  END take;
END
