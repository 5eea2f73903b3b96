-- A table that exists is never touched: this fails (1050) and nothing after it runs. To replace only the routines
-- over existing counters, run create_procedures.sql.
CREATE TABLE {{ table.name }} (
{%- for column in table.key.columns() %}
  {{ column.name.typed() }} {{ table.key.column_type(column) }} NOT NULL
    COMMENT 'Which record',
{%- endfor %}
  slot INT NOT NULL
    COMMENT 'From 0; a slot is there once it has been written',
  `count` BIGINT NOT NULL DEFAULT 0
    COMMENT 'Count of this slot, may be negative: only the sum over all slots has a meaning',
  PRIMARY KEY ({{ table.key.list() }}, slot)
)
  ENGINE = InnoDB
  DEFAULT CHARACTER SET utf8mb4 COLLATE {{ table.package.options.collation }}
  COMMENT = {% filter sql_string %}Counters in slots, by record: a count is the sum of the rows. See the view {{ table.package.package.typed() }}.{% endfilter %};
