SET SESSION sql_mode = @slotted_sql_mode,
    SESSION character_set_client = @slotted_character_set_client,
    SESSION character_set_results = @slotted_character_set_results,
    SESSION collation_connection = @slotted_collation_connection;
