{% import "macros.sql" as m -%}
{% include "files/_banner.sql" %}
-- Creates the table, the views and the routines in the current database: mysql DATABASE < setup.sql
-- To replace the routines of an existing table, source create_procedures.sql.

{% include "files/_begin.sql" %}
{% let replaces = false -%}
{% include "files/_check.sql" -%}
{% include "files/_table.sql" %};

{% include "files/_routines.sql" %}
{% include "files/_end.sql" %}
