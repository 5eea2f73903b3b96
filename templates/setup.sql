{{ c.banner() }}
--
-- Creates the table, the routines and the views in the current database. From a shell:
--   mysql YOUR_DATABASE < setup.sql
-- At the prompt of the client, which goes on after an error, so watch for one:
--   source setup.sql

{% include "_session_begin.sql" %}

-- From templates/{{ c.table_template() }}
{{ c.create_table() }}
{% include "_routines_and_views.sql" %}
{% include "_session_end.sql" %}
