-- Compares the table with the one of create_tables.sql. Nothing has been changed if this check stops the script.
SET @slotted_problem = (
  SELECT CONCAT({% filter sql_string %}the table {{ table.name }} {% endfilter %}, found.problem)
    FROM (
      SELECT 1 AS priority,
             'does not exist in this database. Source create_tables.sql' AS problem
        FROM DUAL
       WHERE NOT EXISTS (
        SELECT *
          FROM information_schema.TABLES
         WHERE TABLE_SCHEMA = DATABASE()
           AND TABLE_NAME = {{ table.name.name()|sql_string }}
      )
       UNION ALL
      SELECT 2,
             {% filter sql_string %}does not use the storage engine InnoDB. Run: ALTER TABLE {{ table.name }} ENGINE = InnoDB{% endfilter %}
        FROM information_schema.TABLES
       WHERE TABLE_SCHEMA = DATABASE()
         AND TABLE_NAME = {{ table.name.name()|sql_string }}
         AND (ENGINE <> 'InnoDB' OR ENGINE IS NULL)
       UNION ALL
      SELECT 3,
             IF(
               MAX(actual.COLUMN_NAME IS NULL AND expected.name = {{ table.count().replace("`", "")|sql_string }}),
               {% filter sql_string %}has no column {{ table.count() }} with the counts: it was renamed or dropped. Give it its name again: ALTER TABLE {{ table.name }} RENAME COLUMN ... TO {{ table.count() }}; or restore the table from a backup{% endfilter %},
               CONCAT(
                 {% filter sql_string %}has other columns than in create_tables.sql. Run: ALTER TABLE {{ table.name }} {% endfilter %},
                 GROUP_CONCAT(IF(actual.COLUMN_NAME IS NULL, 'ADD ', 'MODIFY '), expected.definition ORDER BY expected.position SEPARATOR ', ')))
        FROM (
{%- for column in table.columns() %}
          SELECT {{ loop.index }} AS position,
                 {{ column.name.name()|sql_string }} AS name,
                 {{ column.column_type()|sql_string }} AS type,
                 {% if column.text %}{{ package.options.collation|sql_string }}{% else %}''{% endif %} AS collation,
                 {% if column.null %}'YES'{% else %}'NO'{% endif %} AS nullable,
                 {% filter sql_string %}{{ column.name }} {{ column.kind }}{% if column.text %} CHARACTER SET {{ package.options.collation.charset() }} COLLATE {{ package.options.collation }}{% endif %}{% if column.null %} NULL{% else %} NOT NULL{% endif %}{% endfilter %} AS definition
{%- if !loop.last %}
           UNION ALL
{%- endif %}
{%- endfor %}
        ) AS expected
        LEFT JOIN information_schema.COLUMNS AS actual
          ON actual.TABLE_SCHEMA = DATABASE()
         AND actual.TABLE_NAME = {{ table.name.name()|sql_string }}
         AND actual.COLUMN_NAME = expected.name
       WHERE actual.COLUMN_NAME IS NULL
          -- MariaDB has a display width: int(11) unsigned is INT UNSIGNED, year(4) is YEAR.
          OR IF(RIGHT(actual.DATA_TYPE, 3) = 'int' OR actual.DATA_TYPE = 'year',
                CONCAT(actual.DATA_TYPE, IF(INSTR(actual.COLUMN_TYPE, 'unsigned') > 0, ' unsigned', '')),
                actual.COLUMN_TYPE) <> expected.type
          OR COALESCE(actual.COLLATION_NAME, '') <> expected.collation
          OR actual.IS_NULLABLE <> expected.nullable
      HAVING COUNT(*) > 0
       UNION ALL
      SELECT 4,
             {% filter sql_string %}has another primary key than in create_tables.sql. Run: ALTER TABLE {{ table.name }} DROP PRIMARY KEY, ADD PRIMARY KEY ({{ table.key.list() }}, {{ table.slot() }}){% endfilter %}
        FROM DUAL
       WHERE {{ table.key_columns().len() }} <> (
        SELECT COALESCE(SUM(IF(SUB_PART IS NULL, 1, 0)), 0)
          FROM information_schema.STATISTICS
         WHERE TABLE_SCHEMA = DATABASE()
           AND TABLE_NAME = {{ table.name.name()|sql_string }}
           AND INDEX_NAME = 'PRIMARY'
           AND COLUMN_NAME = ELT(SEQ_IN_INDEX{% for column in table.key_columns() %}, {{ column.name()|sql_string }}{% endfor %})
      )
          OR {{ table.key_columns().len() }} <> (
        SELECT COUNT(*)
          FROM information_schema.STATISTICS
         WHERE TABLE_SCHEMA = DATABASE()
           AND TABLE_NAME = {{ table.name.name()|sql_string }}
           AND INDEX_NAME = 'PRIMARY'
      )
       UNION ALL
      SELECT 5,
             CONCAT('has another unique index, by which an increment can change a row of another counter. Run: ALTER TABLE ', {{ table.name|sql_string }}, ' DROP INDEX `', MIN(INDEX_NAME), '`')
        FROM information_schema.STATISTICS
       WHERE TABLE_SCHEMA = DATABASE()
         AND TABLE_NAME = {{ table.name.name()|sql_string }}
         AND INDEX_NAME <> 'PRIMARY'
         AND NON_UNIQUE = 0
      HAVING COUNT(*) > 0
{%- if package.options.bounded %}
       UNION ALL
      SELECT 6,
             {% filter sql_string %}has no CHECK that keeps slots from being negative. Run: ALTER TABLE {{ table.name }} ADD CHECK ({{ table.count() }} >= 0){% endfilter %}
        FROM DUAL
       WHERE NOT EXISTS (
        SELECT *
          FROM information_schema.CHECK_CONSTRAINTS
{%- if package.options.servers != Servers::Mariadb %}
          {{ table.only_mysql("begin") }}JOIN information_schema.TABLE_CONSTRAINTS USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME){{ table.only_mysql("end") }}
{%- endif %}
         WHERE CONSTRAINT_SCHEMA = DATABASE()
           AND TABLE_NAME = {{ table.name.name()|sql_string }}
           AND REPLACE(REPLACE(REPLACE(REPLACE(CHECK_CLAUSE, '`', ''), '(', ''), ')', ''), ' ', '') = {% filter sql_string %}{{ table.count().replace("`", "") }}>=0{% endfilter %}
{%- if package.options.servers != Servers::Mariadb %}
           {{ table.only_mysql("begin") }}AND ENFORCED = 'YES'{{ table.only_mysql("end") }}
{%- endif %}
      )
{%- endif %}
    ) AS found
   ORDER BY found.priority
   LIMIT 1
);
{% include "files/_raise.sql" %}
