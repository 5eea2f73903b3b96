{% include "files/_banner.sql" %}
--
-- Creates the table, the views and the routines in the current database. From a shell: mysql YOUR_DATABASE < setup.sql
-- At the prompt of the client, which continues after an error: source setup.sql
{%- let again = "create_procedures.sql for the rest" %}
{%- include "files/_waits.sql" %}
{%- include "files/_notes.sql" %}

{% include "files/_session_begin.sql" %}
{%- if package.routine(R::Get).is_some() %}

{% include "files/_check_function.sql" %}
{%- endif %}

{{ script.create_table() }}
SET @slotted_rest = IF(@@error_count = 0, @slotted_read_only, 1);
SET SESSION {% include "files/_read_only.sql" %} = @slotted_rest;

{{ script.routines_and_views_text() }}

{% include "files/_session_end.sql" %}
