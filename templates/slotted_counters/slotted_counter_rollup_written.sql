CREATE TABLE IF NOT EXISTS {{ rollup.written }} (
  record {{ rollup.table.key.variable_type(rollup.record) }} NOT NULL
    COMMENT {% filter sql_string %}{{ rollup.record.name.typed() }} of the record{% endfilter %},
  total DECIMAL(65, 0) NOT NULL
    COMMENT {% filter sql_string %}The value of {{ rollup.column() }} that was written or imported last{% endfilter %},
  PRIMARY KEY (record)
)
  ENGINE = InnoDB
  DEFAULT CHARACTER SET utf8mb4 COLLATE {{ rollup.package.options.collation }}
  COMMENT = {% filter sql_string %}Values of {{ rollup.column() }}. A greater value has counts that are not imported.{% endfilter %};
