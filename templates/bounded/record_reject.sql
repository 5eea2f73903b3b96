{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT,
  IN p_slot BIGINT,
  IN p_autocommit BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. A take whose slot, p_slot, has less than the amount. Fails if the total is less for certain, and otherwise takes from other
  slots. The total of a snapshot is certain only outside a transaction (p_autocommit). Callers that are rejected do not wait for each other.
{%- endfilter %}
BEGIN
  DECLARE v_total{% if table.mariadb() %}, v_again{% endif %} DECIMAL(65, 0);
  DECLARE v_slots, v_first, v_guard BIGINT;
  DECLARE v_found, v_before, v_new, v_taken BOOLEAN;

  IF p_amount IS NULL OR p_amount < 1 THEN
    {{ r.signal(E::AmountNotPositive)|indent(4) }}
  END IF;
{%- if table.mariadb() %}

  -- The variable in_transaction of MariaDB is 0 in functions and triggers.
  {{ table.only_mariadb("begin") }}SET p_autocommit = FALSE;
  {{ table.outside_transaction("p_autocommit")|indent(2) }}{{ table.only_mariadb("end") }}
{%- endif %}
  REPEAT
    {{ table.over_snapshot()|before(4) }}SELECT COALESCE(SUM(`count`), 0), COUNT(*), MAX(IF(slot = 0, `count`, NULL)), MAX(IF(slot = p_slot, slot, 0))
      INTO v_total, v_slots, v_first, v_guard
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }};
    IF v_taken IS NOT NULL OR v_total < p_amount THEN
      {{ r.find_certainty("COALESCE(SUM(`count`), 0)")|indent(6) }}
      IF NOT v_new THEN
        -- If slot 0 exists, it is locked first. If it was created or deleted meanwhile, the sum can miss counts: again.
        SET v_found = v_first IS NOT NULL;
        REPEAT
          SET v_before = v_found;
          {{ table.over_snapshot()|before(10) }}SELECT COALESCE(SUM(amount), 0), COUNT(IF(slot = 0, 1, NULL))
            INTO v_total, v_found
            FROM {{ table.first_if_found_and_others()|indent(12) }};
        UNTIL v_found = v_before END REPEAT;
      END IF;
      IF v_total < p_amount THEN
        {{ r.signal(E::NotEnough)|indent(8) }}
      END IF;
    END IF;
    CALL {{ r.sibling(R::TakeElsewhere) }}({{ table.key.arguments() }}, p_amount, p_slot, p_autocommit, v_total, v_slots, v_first, v_guard, v_taken);
  UNTIL v_taken END REPEAT;
END
