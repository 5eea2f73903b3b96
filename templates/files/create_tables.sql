{% include "files/_banner.sql" %}
--
-- Creates the table. create_procedures.sql creates the routines and the views.

{% include "files/_session_begin.sql" %}

{% include "files/_table.sql" %}

{% include "files/_session_end.sql" %}
