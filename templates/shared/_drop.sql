{% match package.options.servers -%}
{% when Servers::Both -%} /*!80000 DROP {{ kind }} IF EXISTS {{ name }} */;
{%- when Servers::Mysql -%} DROP {{ kind }} IF EXISTS {{ name }};
{%- when Servers::Mariadb -%}
{%- endmatch %}
