{{ sql.banner() }}
-- Creates the table, the routines and the views in the current database. Replaces nothing: mysql DATABASE < setup.sql
{%- if o.definer.is_none() %}
-- They run with the privileges of the account that executes this script: render it with --definer for another one.
{%- endif %}

{{ sql.script(Task::Create) }}
