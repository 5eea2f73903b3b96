{%- if let Some(fail) = fail -%}
CALL {{ fail }}({{ signal.number }},{% if signal.composed %}
  {{ signal.message }}{% else %} {{ signal.message }}{% endif %});
{%- else if signal.composed -%}
BEGIN
  DECLARE v_message VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4
    DEFAULT {{ signal.message }};
  SIGNAL SQLSTATE '45000'
     SET MYSQL_ERRNO = {{ signal.number }},
         MESSAGE_TEXT = v_message;
END;
{%- else -%}
SIGNAL SQLSTATE '45000'
   SET MYSQL_ERRNO = {{ signal.number }},
       MESSAGE_TEXT = {{ signal.message }};
{%- endif %}
