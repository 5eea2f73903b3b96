-- The script restores these session variables at the end. The server stores sql_mode and the character set with each routine.
SET @slotted_sql_mode = @@SESSION.sql_mode, @slotted_lock_wait_timeout = @@SESSION.lock_wait_timeout,
    @slotted_sql_big_selects = @@SESSION.sql_big_selects, @slotted_sql_safe_updates = @@SESSION.sql_safe_updates,
    @slotted_character_set_client = @@SESSION.character_set_client, @slotted_character_set_results = @@SESSION.character_set_results,
    @slotted_collation_connection = @@SESSION.collation_connection,
    @slotted_read_only = @@SESSION.{% include "files/_read_only.sql" %};
SET SESSION sql_mode = {{ SQL_MODE|sql_string }},
    SESSION lock_wait_timeout = {{ DDL_TIMEOUT }}, SESSION sql_big_selects = 1, SESSION sql_safe_updates = 0;
SET NAMES utf8mb4 COLLATE {{ package.options.collation.of_arguments() }};
