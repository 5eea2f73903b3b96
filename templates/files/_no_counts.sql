  -- Waits for all transactions that have used the table. Until the table has its name again, calls fail.
  RENAME TABLE {{ o.table }} TO {{ package.temporary() }};
  SELECT LEFT(CONCAT('the table has counts, move or delete them first: ',
           GROUP_CONCAT(entry, ' ', total SEPARATOR '; ')), 128)
    INTO v_left
    FROM (
      SELECT CONCAT_WS(', ', {{ sql.key("{text}", ", ") }}) AS entry,
             SUM({% if o.is_named() %}counter{% else %}`count`{% endif %}) AS total
        FROM {{ package.temporary() }} FORCE INDEX (PRIMARY)
       GROUP BY {{ sql.key("{}", ", ") }}
      HAVING total <> 0
       LIMIT 5
    ) AS counts;
  IF v_left IS NOT NULL THEN
    RENAME TABLE {{ package.temporary() }} TO {{ o.table }};
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30022, MESSAGE_TEXT = v_left;
  END IF;
