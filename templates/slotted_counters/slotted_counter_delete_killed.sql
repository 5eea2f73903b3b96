{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Called after a DELETE that has deleted no row: fails if the record has slot 0.
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;

  {{ table.over_snapshot()|before(2) }}SELECT COUNT(*)
    INTO v_rows
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }}
     AND slot = 0
    LOCK IN SHARE MODE;
  IF v_rows > 0 THEN
    CALL {{ r.sibling(R::Fail) }}(1317, NULL);
  END IF;
END
