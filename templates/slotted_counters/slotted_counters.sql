-- If the table exists, this statement fails with error 1050 and nothing is changed, also at the prompt of a client, which continues: then
-- the rest fails with 1792. To replace the routines of existing counters, source create_procedures.sql.
CREATE TABLE {{ table.name }} (
{%- for column in table.key.columns() %}
  {{ column.name.typed() }} {{ table.key.column_type(column) }} NOT NULL
    COMMENT 'Key of the record{% if table.key.columns().len() > 1 %}, column {{ loop.index }} of {{ table.key.columns().len() }}{% endif %}',
{%- endfor %}
  slot INT NOT NULL
    COMMENT {% if table.bounded() %}'Number of the slot: 0 belongs to no connection; connections have 1 to {{ table.slots() }}, each inserted when it is first written'{% else %}'Number of the slot, from 0; the first increment of a slot inserts its row'{% endif %},
  `count` BIGINT NOT NULL DEFAULT 0
    COMMENT 'Count of the slot, {% if table.bounded() %}never{% else %}may be{% endif %} negative; the total of the record is the sum of its slots',
  PRIMARY KEY ({{ table.key.list() }}, slot)
{%- if table.bounded() %},
  CONSTRAINT {{ table.not_negative() }} CHECK (`count` >= 0)
{%- endif %}
)
  ENGINE = InnoDB
  DEFAULT CHARACTER SET {{ table.package.options.collation.charset() }} COLLATE {{ table.package.options.collation }}
  COMMENT = {% filter sql_string %}Counters keyed by record{% if table.bounded() %} that never fall below 0{% endif %}. The total of a record is the sum of its slots. Version and options: view {{ table.package.package.typed() }}{% endfilter %};
