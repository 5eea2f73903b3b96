{% include "files/_banner.sql" %}
--
-- Creates the table. create_procedures.sql creates the routines and the views.

{% include "files/_session_begin.sql" %}

{{ script.create_table() }}

{% include "files/_session_end.sql" %}
