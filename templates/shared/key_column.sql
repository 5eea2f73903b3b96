{#- Parts of statements that depend on the type of a column of the key. `p` is the value. Each block is a part. -#}

{#- An argument in the character set of the column. -#}
{% block converted -%}
{%- if key.lacks_characters(column) -%} CONVERT({{ p }} USING {{ key.collation().charset() }}) COLLATE {{ key.collation() }}
{%- else -%} {{ p }}
{%- endif -%}
{%- endblock %}

{#- True if the character set of the column has all characters of the argument. CONVERT changes those that it lacks. -#}
{% block converts -%}
(CONVERT({{ p }} USING {{ key.collation().charset() }}) = {{ p }} COLLATE {{ key.collation().of_arguments() }})
{%- endblock %}

{#- An argument as a value of the column. MySQL rounds fractions of a second, and would count 23:59:59.7 for the next day. -#}
{% block value -%}
{%- match column.kind -%}
{%- when KeyType::Date("DATE") -%} DATE({{ p }})
{%- when KeyType::Date(_) -%} {{ p }} - INTERVAL MICROSECOND({{ p }}) MICROSECOND
{%- when KeyType::Text("CHAR", _) -%} {% if key.collation().keeps_spaces() %}RTRIM({{ key.converted(column) }}){% else %}{{ key.converted(column) }}{% endif %}
{%- when _ -%} {{ key.converted(column) }}
{%- endmatch -%}
{%- endblock %}

{#- True if the value fits the column. Unknown for NULL. -#}
{% block fits -%}
{%- match column.kind -%}
{%- when KeyType::Name -%} CHAR_LENGTH({{ p }}) <= {{ NAME_MAX }}
{%- when KeyType::Integer(_, least, most) -%} {{ p }} BETWEEN {{ least }} AND {{ most }}
{%- when KeyType::Date(_) -%} {{ p }} BETWEEN TIMESTAMP '1000-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999' AND MONTH({{ p }}) > 0 AND DAYOFMONTH({{ p }}) > 0
{%- when KeyType::Text(_, n) -%} CHAR_LENGTH({{ p }}) <= {{ n }}{% if key.lacks_characters(column) %} AND {{ key.converts(column) }}{% endif %}
{%- when KeyType::Binary("BINARY", n) -%} LENGTH({{ p }}) = {{ n }}
{%- when KeyType::Binary(_, n) -%} LENGTH({{ p }}) <= {{ n }}
{%- when _ -%}
{%- endmatch -%}
{%- endblock %}

{#- True if the value does not fit the column. Unknown for NULL. A date is compared as a text. A session without NO_ZERO_IN_DATE can
    have months and days of 0. -#}
{% block misfit -%}
{%- match column.kind -%}
{%- when KeyType::Name -%} CHAR_LENGTH({{ p }}) > {{ NAME_MAX }}
{%- when KeyType::Integer(_, least, most) -%} {{ p }} NOT BETWEEN {{ least }} AND {{ most }}
{%- when KeyType::Date(_) -%} {{ p }} NOT BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999' OR '00' IN (SUBSTRING({{ p }}, 6, 2), SUBSTRING({{ p }}, 9, 2))
{%- when KeyType::Text(_, n) -%} CHAR_LENGTH({{ p }}) > {{ n }}{% if key.lacks_characters(column) %} OR NOT {{ key.converts(column) }}{% endif %}
{%- when KeyType::Binary("BINARY", n) -%} LENGTH({{ p }}) <> {{ n }}
{%- when KeyType::Binary(_, n) -%} LENGTH({{ p }}) > {{ n }}
{%- when _ -%}
{%- endmatch -%}
{%- endblock %}

{#- True if a value of JSON_TABLE() fits the column. `json` is the same value as JSON. If the type of the column in
    JSON_TABLE() cannot store an integer, MySQL changes it to NULL, and MariaDB to the nearest limit of the type. MariaDB reads 15e-1
    as 2. Both read a date with more text behind it, such as a time zone. -#}
{% block json_fits -%}
{%- match column.kind -%}
{%- when KeyType::Integer(_, least, most) -%}
JSON_TYPE({{ json }}) IN ('INTEGER', 'UNSIGNED INTEGER') AND CAST({{ json }} AS CHAR) = CAST({{ p }} AS CHAR)
{%- if column.kind.is_limited() %}
   AND {{ p }} BETWEEN {{ least }} AND {{ most }}
{%- endif %}
{%- when KeyType::Name -%} JSON_TYPE({{ json }}) = 'STRING' AND RTRIM({{ p }}) <> '' AND {{ key.fits(column) }}
{%- when KeyType::Date(_) -%} JSON_TYPE({{ json }}) = 'STRING' AND {{ key.fits(column) }}
   AND JSON_UNQUOTE({{ json }}) REGEXP '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?$'
{%- when KeyType::Binary("BINARY", n) -%} JSON_TYPE({{ json }}) = 'STRING' AND LENGTH(UNHEX({{ p }})) = {{ n }}
{%- when KeyType::Binary(_, n) -%} JSON_TYPE({{ json }}) = 'STRING' AND LENGTH(UNHEX({{ p }})) <= {{ n }}
{%- when _ -%} JSON_TYPE({{ json }}) = 'STRING' AND {{ key.fits(column) }}
{%- endmatch -%}
{%- endblock %}

{#- A value of JSON_TABLE() as a value of the column. -#}
{% block json_value -%}
{%- match column.kind -%}
{%- when KeyType::Binary(..) -%} UNHEX({{ p }})
{%- when _ -%} {{ key.value(column) }}
{%- endmatch -%}
{%- endblock %}
