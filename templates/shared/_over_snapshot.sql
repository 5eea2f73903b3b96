/*M!110602 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
