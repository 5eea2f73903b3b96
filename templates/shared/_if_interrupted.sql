{%- if package.options.servers != Servers::Mysql -%}
-- On MariaDB 11.8, KILL QUERY can end an UPDATE or a DELETE without an error. A locking read sees the same rows
-- as this statement, unlike a read of the snapshot.
BEGIN
  DECLARE v_left BIGINT;
  {{ table.over_snapshot()|before(2) }}SELECT COUNT(*)
    INTO v_left
    FROM {{ table.name }}
   WHERE {{ condition|indent(2) }}
    LOCK IN SHARE MODE;
  IF v_left > 0 THEN
    SIGNAL SQLSTATE '70100'
       SET MYSQL_ERRNO = 1317,
           MESSAGE_TEXT = 'Query execution was interrupted';
  END IF;
END;
{%- endif -%}
