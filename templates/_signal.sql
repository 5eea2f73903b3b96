{%- if signal.composed -%}
SET v_message = {{ signal.message }};
{% endif -%}
SIGNAL SQLSTATE '45000'
   SET MYSQL_ERRNO = {{ signal.number }},
       MESSAGE_TEXT = {% if signal.composed %}v_message{% else %}{{ signal.message }}{% endif %};
