{% include "files/_banner.sql" %}
--
-- Creates the table alone. create_procedures.sql makes what works on it.

{% include "files/_session_begin.sql" %}

{% include "files/_table.sql" %}

{% include "files/_session_end.sql" %}
