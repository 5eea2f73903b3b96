{{ c.banner() }}
--
-- Creates the routines and the views, and replaces those that exist. The table is not touched.
-- A privilege that was granted on one routine is lost with it: grant EXECUTE on the schema, as grants.sql does.

{% include "_session_begin.sql" %}
{% include "_routines_and_views.sql" %}
{% include "_session_end.sql" %}
