{%- match package.options.servers -%}
{%- when Servers::Both -%}
/*!80000 transaction_read_only */ /*M!100000 tx_read_only */
{%- when Servers::Mysql -%}
transaction_read_only
{%- when Servers::Mariadb -%}
tx_read_only
{%- endmatch -%}
