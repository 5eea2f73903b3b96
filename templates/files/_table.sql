CREATE TABLE {{ o.table }} ({% if o.is_named() %}
  counter_name {{ sql.varchar(NAME_MAX) }} NOT NULL COMMENT 'Name of the counter',
  counter_id INT NOT NULL COMMENT 'Number of the slot, from 1; negative while a resize removes the slot',
  description {{ sql.varchar(DESCRIPTION_MAX) }} NULL COMMENT 'What it counts',
  start_date DATETIME NOT NULL COMMENT 'Counting since, in the time zone of the session that set it',
  counter BIGINT NOT NULL DEFAULT 0 COMMENT 'Count of the slot; the total of the counter is the sum of its slots',
  PRIMARY KEY (counter_name, counter_id)
{%- if o.is_bounded() %},
  CHECK (counter >= 0){% endif %}
{%- else %}
  {{ sql.key("{} {type} NOT NULL COMMENT 'Key of the record'", ",\n  ") }},
  slot SMALLINT UNSIGNED NOT NULL COMMENT 'Number of the slot, from 0; the first increment of a slot inserts its row',
  `count` BIGINT NOT NULL COMMENT
{%- if o.column().is_some() %} 'Pending count of the slot, which may be negative: a roll-up moves it into the column'
{%- else %} 'Count of the slot, which may be negative; the total of the record is the sum of its slots'
{%- endif %},
  PRIMARY KEY ({{ sql.key("{}", ", ") }}, slot){% endif %}
) ENGINE = InnoDB
  DEFAULT CHARACTER SET {{ o.collation().charset() }} COLLATE {{ o.collation() }}
  COMMENT = 'Version and options: view {{ package.description.name() }}'
