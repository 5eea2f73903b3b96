{{ script.create_table() }}
