{%- import "macros.sql" as m -%}
{%- let take = sql.routine(R::Take).name() -%}
{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_amount BIGINT)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Called if the slot has too little: fails if the total is too small, otherwise takes from the others.
  Locks slot 1 first: outside of transactions and triggers, takes do not deadlock with each other.'
taking: BEGIN
  DECLARE v_total{% if o.mariadb() %}, v_again{% endif %} DECIMAL(65, 0);
  DECLARE v_slots BIGINT;
  DECLARE v_certain, v_taken BOOLEAN DEFAULT FALSE;

  IF p_amount IS NULL OR p_amount < 1 THEN
    CALL {{ sql.routine(R::Fail) }}(30017, '{{ take }}: p_amount must be at least 1');
  END IF;
  {% if o.mariadb() %}{{ m::outside_of_transaction(o, "v_certain = @@SESSION.tx_isolation <> 'READ-UNCOMMITTED'") }}
  {%- else %}{{ m::outside_of_transaction(o, "v_certain = @@SESSION.transaction_isolation <> 'READ-UNCOMMITTED'") }}
  {%- endif %}
  -- Certain outside of a transaction, where it reads what is committed. In one, a snapshot can be old: locks decide.
  SELECT SUM(counter), COUNT(*) INTO v_total, v_slots
    FROM {{ o.table }} WHERE counter_name = p_counter_name AND counter_id > 0;
{%- if o.mariadb() %}
  -- A snapshot of MariaDB can contain a take and lack the add before it (seen), so that the sum is too low. A second
  -- one must agree. If both are too low, a call fails (30016) that need not, and no count is wrong.
  IF v_certain AND v_total < p_amount THEN
    SELECT SUM(counter) INTO v_again FROM {{ o.table }} WHERE counter_name = p_counter_name AND counter_id > 0;
    SET v_certain = v_again <=> v_total;
  END IF;{% endif %}
  -- An unknown counter fails here, before a gap is locked. In a transaction, NULL can be an old snapshot.
  IF v_certain AND v_total IS NULL THEN
    CALL {{ sql.routine(R::Fail) }}(30003, CONCAT('{{ take }}: unknown counter ', QUOTE(p_counter_name)));
  END IF;
  IF NOT v_certain OR v_total >= p_amount THEN
    -- Three attempts of one statement each: slot 1, which has all if less than 10 a slot are left; free slots; all.
    IF v_total - p_amount < 10 * v_slots THEN -- only a guess; NULL skips it
      UPDATE {{ o.table }}
         SET counter = counter - p_amount
       WHERE counter_name = p_counter_name AND counter_id = 1 AND counter >= p_amount;
      SET v_taken = ROW_COUNT() > 0;
    END IF;
    IF NOT v_taken THEN CALL {{ sql.routine(R::Collect) }}(p_counter_name, p_amount, FALSE, v_taken); END IF;
    IF NOT v_taken THEN CALL {{ sql.routine(R::Collect) }}(p_counter_name, p_amount, TRUE, v_taken); END IF;
    IF v_taken THEN LEAVE taking; END IF;
    CALL {{ sql.routine(R::MustExist) }}('{{ take }}', p_counter_name);
    -- Only for the message: FOR UPDATE reads the newest counts, SKIP LOCKED does not wait, so it can be too low.
    SELECT COALESCE(SUM(counter), 0) INTO v_total
      FROM {{ o.table }} WHERE counter_name = p_counter_name FOR UPDATE SKIP LOCKED;
  END IF;
  CALL {{ sql.routine(R::Fail) }}(30016, CONCAT('{{ take }}: not enough: ',
    IF(v_total < p_amount, v_total, CONCAT('less than ', p_amount)), ' left of ', QUOTE(p_counter_name)));
END
