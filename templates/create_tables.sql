{{ c.banner() }}
--
-- Creates the table alone. create_procedures.sql makes what works on it.

{% include "_session_begin.sql" %}

-- From templates/{{ c.table_template() }}
{{ c.create_table() }}

{% include "_session_end.sql" %}
