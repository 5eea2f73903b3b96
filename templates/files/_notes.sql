{%- if package.options.servers != Servers::Mysql %}
--
-- MariaDB 11.6.2 and later rejects a change of a row that has changed since the first SELECT of the transaction (1020,
-- innodb_snapshot_isolation). These statements do not depend on earlier reads: SET STATEMENT disables this check for one statement.
{%- endif %}
{%- if package.options.servers == Servers::Both %}
-- MariaDB 10.11.8 and later executes comments that start with /*M!101108, MySQL those that start with /*!80000.
{%- endif %}
