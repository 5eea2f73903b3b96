{% if table.explained -%}
-- MariaDB from 11.6.2 would refuse this (1020) after a SELECT of the same transaction.
{% endif -%}
/*M!110602 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
