{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT,
  IN p_autocommit BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. A take whose slot has less than the amount. Fails if the total is less for certain, and otherwise takes from other slots.
  The total of a snapshot is certain only outside a transaction (p_autocommit). Callers that are rejected do not wait for each other.
{%- endfilter %}
BEGIN
  DECLARE v_total{% if table.mariadb() %}, v_again{% endif %} DECIMAL(65, 0);
  DECLARE v_complete, v_new, v_taken BOOLEAN;

  IF p_amount IS NULL OR p_amount < 1 OR CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
    {{ r.check()|indent(4) }}
    {{ r.signal(E::AmountNotPositive)|indent(4) }}
  END IF;
{%- if table.mariadb() %}

  -- The variable in_transaction of MariaDB is 0 in functions and triggers.
  {{ table.only_mariadb("begin") }}SET p_autocommit = FALSE;
  {{ table.outside_transaction("p_autocommit")|indent(2) }}{{ table.only_mariadb("end") }}
{%- endif %}
  REPEAT
    {{ table.over_snapshot()|before(4) }}SELECT SUM(counter), TRUE
      INTO v_total, v_complete
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }};
    IF v_taken IS NOT NULL OR v_total IS NULL OR v_total < p_amount THEN
      {{ r.find_certainty("SUM(counter)")|indent(6) }}
      IF NOT v_new THEN
        {{ table.over_snapshot()|before(8) }}SELECT SUM(amount), SUM(slot = 1) > 0
          INTO v_total, v_complete
          FROM {{ table.first_and_others_shared()|indent(10) }};
      END IF;
      IF v_total IS NULL THEN
        CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
      ELSEIF v_total < p_amount AND v_complete THEN
        {{ r.signal(E::NotEnough)|indent(8) }}
      END IF;
    END IF;
    CALL {{ r.sibling(R::TakeElsewhere) }}(p_counter_name, p_amount, v_total, v_taken);
  UNTIL v_taken END REPEAT;
END
