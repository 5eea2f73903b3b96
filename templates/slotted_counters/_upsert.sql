{{ table.over_snapshot() }}
INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
VALUES ({{ table.key.arguments() }}, {{ slot }}, {{ amount }})
ON DUPLICATE KEY UPDATE `count` = `count` + {{ amount }};
