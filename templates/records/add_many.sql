{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}(IN p_amounts LONGTEXT CHARACTER SET utf8mb4)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Adds amounts to many records in one statement: all of them or, after an error, none.
Parameters: p_amounts, a JSON array of at most {{ ENTRIES_MAX }} entries [{{ sql.key("{name}", ", ") }}, amount]
{%- for column in o.key() %}
{%- if let KeyType::Binary(..) = column.kind %}, {{ column.name.name() }} as hexadecimal digits{% endif %}
{%- endfor %}
  A record can have several entries, and calls with the same records do not deadlock.
Errors: 30014 p_amounts is not such an array; 30015, 1048, 1406 a value does not fit, is null or too long
  1690 count out of range; 1205, 1213 repeat the transaction
Example: CALL {{ sql.name.typed() }}('[[{{ sql.samples("\"", "\"") }}, 10]]');
{%- endfilter %}
BEGIN
  DECLARE v_entry INT;

  IF (JSON_VALID(p_amounts) AND JSON_TYPE(p_amounts) = 'ARRAY' AND JSON_LENGTH(p_amounts) <= {{ ENTRIES_MAX -}}
    ) IS NOT TRUE THEN
    CALL {{ sql.routine(R::Fail) }}(30014,
      '{{ sql.name.name() }}: p_amounts must be a JSON array of at most {{ ENTRIES_MAX }} entries');
  END IF;
  -- JSON_TABLE also reads 4.6, true and "5" as integers: an entry must be equal to what was read from it.
  SELECT MIN(entry) INTO v_entry
    FROM JSON_TABLE(p_amounts, '$[*]' COLUMNS (
           entry FOR ORDINALITY, array JSON PATH '$', amount BIGINT PATH '$[{{ o.key().len() }}]',
           {{ sql.key("{} {json type} PATH '$[{n}]'", ",\n           ") }})) AS entries{% if o.mariadb() %}
   WHERE NOT JSON_EQUALS(array, JSON_ARRAY({{ sql.key("{json}", ", ") }}, amount))
{%- for column in o.key() %}{% if column.kind.is_text() %}
      OR JSON_TYPE(JSON_EXTRACT(array, '$[{{ loop.index0 }}]')) <> 'STRING'
{%- endif %}{% if let KeyType::Binary(..) = column.kind %}
      OR {{ column.name }} NOT REGEXP '^([0-9A-Fa-f]{2})*$'
{%- endif %}{% endfor %};{% else %}
   WHERE CAST(array AS CHAR) <> CAST(JSON_ARRAY({{ sql.key("{json}", ", ") }}, amount) AS CHAR)
{%- for column in o.key() %}{% if let KeyType::Binary(..) = column.kind %}
      OR {{ column.name }} NOT REGEXP '^([0-9A-Fa-f]{2})*$'
{%- endif %}{% endfor %};{% endif %}
  IF v_entry > 0 THEN
    CALL {{ sql.routine(R::Fail) }}(30015,
      CONCAT('{{ sql.name.name() }}: entry ', v_entry, ' must be an array of the key and an integer'));
  END IF;
  -- In the order of the key, so that calls with the same records do not deadlock.
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
  SELECT {{ sql.key("{value}", ", ") }}, {{ m::slot(o, "", o.setup_slots()) }}, amount
    FROM JSON_TABLE(p_amounts, '$[*]' COLUMNS (
           amount BIGINT PATH '$[{{ o.key().len() }}]',
           {{ sql.key("{} {json type} PATH '$[{n}]'", ",\n           ") }})) AS entries
   ORDER BY {{ sql.key("{}", ", ") }}
  ON DUPLICATE KEY UPDATE `count` = {{ o.table }}.`count` + amount;
END
