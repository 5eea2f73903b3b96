-- The server stores these settings with each routine. The script restores them at the end.
SET @slotted_sql_mode = @@SESSION.sql_mode,
    @slotted_character_set_client = @@SESSION.character_set_client,
    @slotted_character_set_results = @@SESSION.character_set_results,
    @slotted_collation_connection = @@SESSION.collation_connection;
SET SESSION sql_mode = {{ SQL_MODE|sql_string }};
SET NAMES utf8mb4 COLLATE {{ package.options.collation }};
