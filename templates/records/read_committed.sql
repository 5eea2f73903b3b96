{{ sql.create("PROCEDURE") }}()
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Lets the next statement run in READ COMMITTED; REPEATABLE READ also locks the gaps around the record.'
BEGIN
  -- A transaction is open, and its level cannot be changed.
  DECLARE CONTINUE HANDLER FOR 1568
    BEGIN END;
  IF @@SESSION.autocommit THEN
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  END IF;
END
