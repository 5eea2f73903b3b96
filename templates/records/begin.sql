{{ sql.create("PROCEDURE") }}(OUT p_own BOOLEAN)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Begins a transaction that locks no gaps, unless one is open. p_own: whether it has begun one.'
BEGIN
  -- Outside of a transaction, a savepoint ends at once, and RELEASE fails with 1305.
  DECLARE EXIT HANDLER FOR 1305
    BEGIN
      SET p_own = TRUE;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      START TRANSACTION;
    END;

  SET p_own = FALSE;
  SAVEPOINT slotted_begin;
  RELEASE SAVEPOINT slotted_begin;
END
