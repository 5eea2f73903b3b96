{% include "files/_banner.sql" %}
--
-- Creates the routines and the views, and replaces existing ones. The table is not changed.
-- DROP removes the privileges that were granted on a routine. EXECUTE on the schema, as in grants.sql, is kept.
--
{% include "files/_notes.sql" %}

{% include "files/_session_begin.sql" %}
{% include "files/_routines_and_views.sql" %}
{% include "files/_session_end.sql" %}
