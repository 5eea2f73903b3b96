CONCAT_WS(' ', COLUMN_NAME, {% if o.mariadb() -%}
REGEXP_REPLACE(COLUMN_TYPE, '(?<=int)[(][0-9]+[)]', ''){% else %}COLUMN_TYPE{% endif -%}
, COLLATION_NAME, IF(IS_NULLABLE = 'NO', 'NOT NULL', 'NULL'))
