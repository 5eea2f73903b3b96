{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
VALUES ({{ table.key.arguments() }}, {{ slot|indent(8) }}, {{ amount }})
ON DUPLICATE KEY UPDATE `count` = `count` + {{ amount }};
