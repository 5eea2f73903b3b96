{% include "files/_banner.sql" %}
--
-- Creates the routines and the views, and replaces those that exist. The table is not touched.
-- A privilege that was granted on one routine is lost with it: grant EXECUTE on the schema, as grants.sql does.

{% include "files/_session_begin.sql" %}
{% include "files/_routines_and_views.sql" %}
{% include "files/_session_end.sql" %}
