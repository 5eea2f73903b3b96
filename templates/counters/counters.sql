-- If the table exists, this statement fails with error 1050 and nothing is changed, also at the prompt of a client, which continues: then
-- the rest fails with 1792. To replace the routines of existing counters, source create_procedures.sql.
CREATE TABLE {{ table.name }} (
  counter_name {{ table.varchar(NAME_MAX) }} NOT NULL COMMENT 'Name of the counter',
  counter_id INT NOT NULL COMMENT 'Number of the slot, from 1; negative while a resize removes the slot',
  description {{ table.varchar(DESCRIPTION_MAX) }} NULL COMMENT 'Description of the counter',
  start_date DATETIME NOT NULL COMMENT 'Counting since; set by {% if table.bounded() %}bounded_{% endif %}counter_setup, or by {% if table.bounded() %}bounded_{% endif %}counter_reset with p_restart; time zone of that session',
  counter BIGINT NOT NULL DEFAULT 0 COMMENT 'Count of the slot, {% if table.bounded() %}never{% else %}may be{% endif %} negative; the total of the counter is the sum of its slots',
  PRIMARY KEY (counter_name, counter_id)
{%- if table.bounded() %},
  CONSTRAINT {{ table.not_negative() }} CHECK (counter >= 0)
{%- endif %}
)
  ENGINE = InnoDB
  DEFAULT CHARACTER SET utf8mb4 COLLATE {{ table.package.options.collation }}
  COMMENT = {% filter sql_string %}Named counters{% if table.bounded() %} that never fall below 0{% endif %}. The total of a counter is the sum of its slots. Version and options: view {{ table.package.package.typed() }}{% endfilter %};
