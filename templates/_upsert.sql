{{ c.over_snapshot() }}
INSERT INTO {{ c.table() }} ({{ c.key_columns("") }}, {{ c.slot_column() }}, {{ c.count_column() }})
VALUES ({{ c.key_arguments() }}, {{ slot }}, {{ amount }})
ON DUPLICATE KEY UPDATE {{ c.count_column() }} = {{ c.count_column() }} + {{ amount }};
