{{ sql.banner() }}
-- Creates or replaces the views and the routines. Changes nothing if the table is not that of create_tables.sql.
{%- if o.mariadb() %}
-- A statement that waits for open transactions ends after {{ DDL_TIMEOUT }} s (1205): source the script again.
{%- else %}
-- Between DROP and CREATE of a routine, its calls fail (1305). If a statement has waited for open transactions for
-- {{ DDL_TIMEOUT }} s (1205), source the script again.{% endif %}

{{ sql.script(Task::Replace) }}
