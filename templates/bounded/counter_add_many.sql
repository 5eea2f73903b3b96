{{ r.create_as("PROCEDURE") }}(
  IN p_amounts LONGTEXT CHARACTER SET utf8mb4
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds amounts to many {{ table.subject() }}s in one statement: all of them or, after an error, none. The change is part of the
  transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call locks one slot of each {{ table.subject() }}, in the order of the key. To take amounts from several {{ table.subject() }}s, call
  {{ r.sibling(R::Take).typed() }} for each in one transaction.

Parameters
  p_amounts LONGTEXT: a JSON array of at most {{ ENTRIES_MAX }} entries. Each entry is an array: the name of a counter and an integer of
    at least 0. A counter can have several entries.

Errors
{{ r.manual_errors() }}
  1264, 1690  the new count of a slot exceeds the range of BIGINT (errors of the server)

Example
  CALL {{ r.name.typed() }}('[["seats", 3], ["tickets", 1]]');
{%- endfilter %}
BEGIN
  DECLARE v_counters BIGINT;
  DECLARE v_amounts LONGTEXT CHARACTER SET utf8mb4;
  DECLARE v_invalid BIGINT;
  DECLARE v_entry BIGINT;
  DECLARE v_rows BIGINT DEFAULT 0;
  DECLARE v_tries INT DEFAULT 0;

  {{ r.check_array()|indent(2) }}

  -- The amount and the slot of each counter, again as JSON: a subquery of the INSERT would lock the last slot of each counter.
  -- The text of a number is compared, because MariaDB reads 15e-1 as 2, and MySQL a number beyond BIGINT as a negative one.
  {{ table.set_statement("group_concat_max_len=4294967295, innodb_snapshot_isolation=OFF")|before(2) }}SELECT COUNT(*),
         JSON_ARRAYAGG(JSON_ARRAY(counter_name, {{ table.slot_of_call()|indent(9) }}, CAST(amount AS CHAR))),
         MIN(invalid), MIN(negative)
    INTO v_counters, v_amounts, v_invalid, v_entry
    FROM (
      SELECT sums.*,
             (
               -- Reads the end of the index. Without these clauses, MySQL reads every slot, and MariaDB 11.8 the whole table.
               SELECT slots.counter_id
                 FROM {{ table.name }} AS slots FORCE INDEX (PRIMARY)
                WHERE slots.counter_name = sums.counter_name
                ORDER BY slots.counter_name DESC, slots.counter_id DESC
                LIMIT 1
             ) AS v_slots
        FROM (
          SELECT p_counter_name AS counter_name,
                 SUM(p_amount) AS amount,
                 MIN(IF({{ table.entry_fits()|indent(17) }}, NULL, entry)) AS invalid,
                 MIN(IF(p_amount < 0, entry, NULL)) AS negative
            FROM {{ table.entries("p_amounts", "check")|indent(12) }}
           GROUP BY p_counter_name
        ) AS sums
       -- Without LIMIT, MariaDB moves the outer condition into the subquery and does not find the column (1054).
       LIMIT {{ ENTRIES_MAX }}
    ) AS found
   WHERE COALESCE(amount, 1) <> 0
      OR invalid IS NOT NULL
      OR negative IS NOT NULL
      OR v_slots IS NULL;
  IF v_invalid IS NOT NULL THEN
    SET v_entry = v_invalid;
    {{ r.signal(E::EntryMisfit)|indent(4) }}
  END IF;
  IF v_entry IS NOT NULL THEN
    {{ r.signal(E::EntryNegative)|indent(4) }}
  END IF;

  -- The slot of the connection, then the first slot of this node, which a resize does not remove.
  WHILE v_rows = 0 AND v_tries < 2 AND v_counters > 0 DO
    {{ table.over_snapshot()|before(4) }}INSERT INTO {{ table.name }} (counter_name, counter_id, start_date, counter)
    SELECT counter_name, slot, NOW(), amount
      FROM (
        SELECT locked.*,
               COUNT(*) OVER () AS slots
          FROM (
            SELECT existing.counter_name AS counter_name,
                   existing.counter_id AS slot,
                   entries.amount AS amount
              FROM (
                SELECT *
                  FROM JSON_TABLE(
                    v_amounts, '$[*]' COLUMNS (
                      counter_name {{ table.varchar(NAME_MAX) }} PATH '$[0]',
                      slot BIGINT PATH '$[1]',
                      amount DECIMAL(65, 0) PATH '$[2]'
                    )
                  ) AS listed
                 ORDER BY counter_name
                 LIMIT {{ ENTRIES_MAX }}
              ) AS entries
              STRAIGHT_JOIN {{ table.name }} AS existing
                ON existing.counter_name = entries.counter_name
               AND existing.counter_id = COALESCE(
                     IF(v_tries = 0, entries.slot, 1 + MOD(entries.slot - 1, {{ table.nodes() }})), 1)
               FOR UPDATE{{ package.options.servers.of("existing") }}
          ) AS locked
      ) AS adding
     WHERE slots = v_counters
    ON DUPLICATE KEY UPDATE counter = {{ table.name }}.counter + adding.amount;
    SET v_rows = ROW_COUNT(),
        v_tries = v_tries + 1;
  END WHILE;

  IF v_rows = 0 AND v_counters > 0 THEN
    CALL {{ r.sibling(R::AddManyUnknown) }}(p_amounts);
  END IF;
END
