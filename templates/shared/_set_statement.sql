{% match table.package.options.servers -%}
{% when Servers::Both -%} /*M!101108 SET STATEMENT {{ settings }} FOR */
{%- when Servers::Mariadb -%} SET STATEMENT {{ settings }} FOR
{%- when Servers::Mysql -%}
{%- endmatch %}
