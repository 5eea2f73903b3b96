{{ r.create_as("PROCEDURE") }}(
  IN p_number INT,
  IN p_message VARCHAR(1000) CHARACTER SET utf8mb4
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Ends the call with an error: the only routine of the package that signals.
{%- endfilter %}
BEGIN
  SET p_message = LEFT(p_message, {{ MESSAGE_MAX }});
  IF p_number = 1317 THEN
    SIGNAL SQLSTATE '70100'
       SET MYSQL_ERRNO = 1317,
           MESSAGE_TEXT = 'Query execution was interrupted';
  END IF;
  SIGNAL SQLSTATE '45000'
     SET MYSQL_ERRNO = p_number,
         MESSAGE_TEXT = p_message;
END
