SET SESSION sql_mode = @slotted_sql_mode, SESSION lock_wait_timeout = @slotted_lock_wait_timeout,
    SESSION sql_big_selects = @slotted_sql_big_selects, SESSION sql_safe_updates = @slotted_sql_safe_updates,
    SESSION character_set_client = @slotted_character_set_client, SESSION character_set_results = @slotted_character_set_results,
    SESSION collation_connection = @slotted_collation_connection,
    SESSION {% include "files/_read_only.sql" %} = @slotted_read_only;
