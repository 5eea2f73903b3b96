-- The server stores these settings with each routine. The script restores them at the end.
SET @slotted_sql_mode = @@SESSION.sql_mode,
    @slotted_character_set_client = @@SESSION.character_set_client,
    @slotted_character_set_results = @@SESSION.character_set_results,
    @slotted_collation_connection = @@SESSION.collation_connection;
SET SESSION sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
SET NAMES utf8mb4 COLLATE {{ package.options.collation }};
