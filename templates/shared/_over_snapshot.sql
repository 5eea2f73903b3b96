{% match table.package.options.servers -%}
{% when Servers::Both -%} /*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
{%- when Servers::Mariadb -%} SET STATEMENT innodb_snapshot_isolation=OFF FOR
{%- when Servers::Mysql -%}
{%- endmatch %}
