{{ sql.create("PROCEDURE") }}(IN p_number INT,
  IN p_message VARCHAR(1000) CHARACTER SET utf8mb4)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Ends the call with an error of the package. A message has at most 128 characters.'
BEGIN
  SET p_message = LEFT(p_message, 128);
  SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_number, MESSAGE_TEXT = p_message;
END
