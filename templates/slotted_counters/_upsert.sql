{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
VALUES ({{ table.key.arguments() }}, {{ slot }}, {{ amount }})
ON DUPLICATE KEY UPDATE `count` = `count` + {{ amount }};
