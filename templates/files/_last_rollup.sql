  -- DROP EVENT IF EXISTS would need the privilege EVENT even without an event.
  IF EXISTS (SELECT * FROM information_schema.EVENTS
    WHERE {{ sql.on_mariadb("BINARY ") }}EVENT_SCHEMA = DATABASE() AND EVENT_NAME = {{ rollup.name()|sql_string }}) THEN
    DROP EVENT {{ rollup }};
  END IF;
  -- Waits for the transactions that have counted. A view in the place of the table has no index and ends the script.
  SELECT COUNT(*) INTO v_rows FROM {{ o.table }} FORCE INDEX (PRIMARY) LOCK IN SHARE MODE;
  CALL {{ rollup }}(NULL);
{%- if !sql.with_table() %}
  SELECT {{ sql.key("{}", ", ") }}, SUM(`count`) AS pending
    FROM {{ o.table }} FORCE INDEX (PRIMARY)
   GROUP BY {{ sql.key("{}", ", ") }}
  HAVING SUM(`count`) <> 0;{% endif %}
