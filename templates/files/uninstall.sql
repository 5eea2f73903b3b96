{{ sql.banner() }}
-- Drops the routines and the views. The table and its counts stay; DROP TABLE {{ o.table }} deletes them.
{%- if o.column().is_some() %}
-- A last roll-up moves the pending counts. The script prints the records whose counts stay in the table, because the
-- column rejects their total or they have no row.{% endif %}
-- A statement that waits for open transactions ends after {{ DDL_TIMEOUT }} s (1205): source the script again.

{{ sql.script(Task::Remove) }}
