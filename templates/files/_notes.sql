{%- if package.options.servers != Servers::Mysql %}
--
-- MariaDB 11.6.2 and later rejects an UPDATE or DELETE with error 1020 if another connection has changed the row since the
-- first SELECT of the transaction (innodb_snapshot_isolation). The statements of this package do not depend on
-- earlier reads: SET STATEMENT disables this check for one statement.
{%- endif %}
{%- if package.options.servers == Servers::Both %}
-- MariaDB 10.11.8 and later executes comments that start with /*M!101108, MySQL those that start with /*!80000.
{%- endif %}
