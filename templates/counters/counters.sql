-- A table that exists is never touched: this fails (1050) and nothing after it runs. To replace only the routines
-- over existing counters, run create_procedures.sql.
CREATE TABLE {{ table.name }} (
  counter_name {{ table.varchar(NAME_MAX) }} NOT NULL
    COMMENT 'Name of the counter',
  counter_id INT NOT NULL
    COMMENT 'Slot, from 1 to the number of slots of the counter',
  description {{ table.varchar(DESCRIPTION_MAX) }} NULL
    COMMENT 'What is counted',
  start_date DATETIME NOT NULL
    COMMENT 'Since when: set by setup, and by reset where that is asked for',
  counter BIGINT NOT NULL DEFAULT 0
    COMMENT 'Count of this slot, may be negative: only the sum over all slots has a meaning',
  PRIMARY KEY (counter_name, counter_id)
)
  ENGINE = InnoDB
  DEFAULT CHARACTER SET utf8mb4 COLLATE {{ table.package.options.collation }}
  COMMENT = {% filter sql_string %}Counters in slots: the value of a counter is the sum of its rows. See the view {{ table.package.package.typed() }}.{% endfilter %};
