{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT,
  IN p_total DECIMAL(65, 0),
  IN p_autocommit BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Fails if the total is less than the amount for certain, and returns if it is not. p_total is the total of the
  snapshot, which is certain only outside a transaction (p_autocommit). Callers that are rejected do not wait for each other.
{%- endfilter %}
BEGIN
  DECLARE v_total DECIMAL(65, 0) DEFAULT p_total;
  DECLARE v_complete BOOLEAN DEFAULT TRUE;
  DECLARE v_new BOOLEAN;

  {{ r.find_certainty("SUM(counter)")|indent(2) }}
  IF NOT v_new THEN
    {{ table.over_snapshot()|before(4) }}SELECT SUM(amount), SUM(slot = 1) > 0
      INTO v_total, v_complete
      FROM {{ table.first_and_others_shared()|indent(6) }};
  END IF;
  IF v_total IS NULL THEN
    CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
  ELSEIF v_total < p_amount AND v_complete THEN
    {{ r.signal(E::NotEnough)|indent(4) }}
  END IF;
END
