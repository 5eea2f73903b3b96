{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT,
  IN p_total DECIMAL(65, 0),
  IN p_first BOOLEAN,
  IN p_autocommit BOOLEAN
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Fails if the total is less than the amount for certain, and returns if it is not. p_total is the total of the
  snapshot, which is certain only outside a transaction (p_autocommit); p_first tells whether it has slot 0. Callers that are
  rejected do not wait for each other.
{%- endfilter %}
BEGIN
  DECLARE v_total DECIMAL(65, 0) DEFAULT p_total;
  DECLARE v_found BOOLEAN DEFAULT p_first;
  DECLARE v_first BOOLEAN;
  DECLARE v_new BOOLEAN;

  {{ r.find_certainty("COALESCE(SUM(`count`), 0)")|indent(2) }}
  IF NOT v_new THEN
    -- If slot 0 exists, it is locked first. If it was created or deleted meanwhile, the sum can miss counts: again.
    REPEAT
      SET v_first = v_found;
      {{ table.over_snapshot()|before(6) }}SELECT COALESCE(SUM(amount), 0), COUNT(IF(slot = 0, 1, NULL))
        INTO v_total, v_found
        FROM {{ table.first_if_found_and_others()|indent(8) }};
    UNTIL v_found = v_first END REPEAT;
  END IF;
  IF v_total < p_amount THEN
    {{ r.signal(E::NotEnough)|indent(4) }}
  END IF;
END
