{%- let take = sql.routine(R::Take).name() -%}
{{ sql.create("PROCEDURE") }}(
  IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_amount BIGINT
)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. A take whose slot has too little: fails if the total is too small, otherwise takes from the other slots.
  Each statement that locks several slots locks slot 1 first, so that calls outside of transactions do not deadlock.'
BEGIN
  DECLARE v_total{% if o.mariadb() %}, v_again{% endif %} DECIMAL(65, 0);
  DECLARE v_slots, v_rounds, v_rows BIGINT DEFAULT 0;
  DECLARE v_certain BOOLEAN DEFAULT FALSE;

  IF p_amount IS NULL OR p_amount < 1 THEN
    CALL {{ sql.routine(R::Fail) }}(30017, '{{ take }}: p_amount must be at least 1');
  END IF;
  -- Certain: no transaction is open, so that a SELECT reads what is committed now. No function of the server tells this, but
  -- outside of a transaction a savepoint ends at once, so that RELEASE fails (1305).
  BEGIN
    DECLARE EXIT HANDLER FOR 1305
      SET v_certain = @@SESSION.{% if o.mariadb() %}tx_isolation{% else %}transaction_isolation{% endif %} <> 'READ-UNCOMMITTED';
    SAVEPOINT slotted_take;
    RELEASE SAVEPOINT slotted_take;
  END;

  WHILE v_rows = 0 DO
    {{ sql.exempt(4) }}SELECT SUM(counter), COUNT(*)
      INTO v_total, v_slots
      FROM {{ o.table }}
     WHERE counter_name = p_counter_name;{% if o.mariadb() %}
    -- A snapshot of MariaDB can lack a commit that is in progress, although it contains a later one. The next one contains both.
    IF v_certain AND v_total < p_amount THEN
      SELECT SUM(counter)
        INTO v_again
        FROM {{ o.table }}
       WHERE counter_name = p_counter_name;
      SET v_certain = v_again <=> v_total;
    END IF;{% endif %}
    -- Locks all slots and reads what is committed, because others have locked what is left, or the snapshot can be old.
    IF v_rounds > 0 OR (v_total < p_amount AND NOT v_certain) THEN
      {{ sql.exempt(6) }}SELECT SUM(counter)
        INTO v_total
        FROM {{ o.table }}
       WHERE counter_name = p_counter_name
         FOR UPDATE;
    END IF;
    IF v_total IS NULL THEN
      -- If this returns, the snapshot is older than the counter, and the INSERT below reads what is committed.
      CALL {{ sql.routine(R::MustExist) }}('{{ take }}', p_counter_name);
    ELSEIF v_total < p_amount THEN
      CALL {{ sql.routine(R::Fail) }}(30016, CONCAT('{{ take }}: not enough: ', v_total, ' left of ', QUOTE(p_counter_name)));
    ELSEIF v_rounds > 10 THEN
      CALL {{ sql.routine(R::Fail) }}(30021, '{{ take }}: not taken, because others lock what is left, or the slots are damaged');
    END IF;
    -- If less than 10 a slot would be left, takes from slot 1 alone, where the next statement collects what is left.
    IF v_total - p_amount < 10 * v_slots{% if o.cluster %} OR v_rounds > 0{% endif %} THEN
      {{ sql.exempt(6) }}UPDATE {{ o.table }}
         SET counter = counter - p_amount
       WHERE counter_name = p_counter_name
         AND counter_id = 1
         AND counter >= p_amount;
      SET v_rows = ROW_COUNT();
    END IF;
    IF v_rows = 0 THEN
      -- Takes p_amount from slot 1 and all unlocked slots, and spreads the rest (the first get 1 more), or leaves it in slot 1.
      -- Changes nothing if that is too little. All rows exist, so the INSERT only updates; an UPDATE would lock all slots.{% if o.cluster %}
      -- Slot 1 also gets what the next round takes: on Galera, ROW_COUNT() can be 0 after a statement that has locked
      -- more rows than it has changed, although it is committed.{% endif %}
      {{ sql.exempt(6) }}INSERT INTO {{ o.table }} (counter_name, counter_id, start_date, counter)
      SELECT p_counter_name, slot, NOW(), share
        FROM (
          SELECT slot, rest, first,
                 IF(rest >= 10 * slots, (rest + slots - number) DIV slots, IF(slot = 1, rest, 0)) AS share
            FROM (
              SELECT slot,
                     SUM(amount) OVER () - p_amount AS rest,
                     COUNT(*) OVER () AS slots,
                     MIN(slot) OVER () AS first,
                     ROW_NUMBER() OVER (ORDER BY slot) AS number
                FROM (
                  (SELECT counter_id AS slot, counter AS amount
                     FROM {{ o.table }}
                    WHERE counter_name = p_counter_name
                      AND counter_id = 1
                      FOR UPDATE)
                  UNION ALL
                  (SELECT counter_id, counter
                     FROM {{ o.table }}
                    WHERE counter_name = p_counter_name
                      AND counter_id > 1
                    -- DESC: ASC would also lock slot 1 of the next counter. LIMIT: without it, UNION ignores ORDER BY.
                    ORDER BY counter_id DESC
                    LIMIT {{ MAX_SLOTS }}
                      FOR UPDATE SKIP LOCKED)
                ) AS locked
            ) AS summed
        ) AS spread
       WHERE rest >= 0
         AND first = 1
      ON DUPLICATE KEY UPDATE counter = share{% if o.cluster %} + IF(slot = 1, p_amount, 0);
{%- else %};
      SET v_rows = ROW_COUNT();{% endif %}
    END IF;
    SET v_rounds = v_rounds + 1;
  END WHILE;
END
