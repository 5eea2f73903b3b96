SET sql_mode = @slotted_sql_mode, lock_wait_timeout = @slotted_lock_wait_timeout,
    character_set_client = @slotted_client, collation_connection = @slotted_collation
