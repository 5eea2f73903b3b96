{% import "macros.sql" as m -%}
{% include "files/_banner.sql" %}
-- Creates the table, the routines and the views in the current database: mysql DATABASE < setup.sql
-- CREATE fails if an object exists, so that the script replaces nothing, not even at the prompt, where the client continues
-- after an error. To replace the routines of an existing table, source create_procedures.sql.

{% let replaces = false -%}
{% let end = ";;" -%}
DELIMITER ;;
{% include "files/_begin.sql" %}
{% include "files/_check.sql" -%}
{% include "files/_table.sql" %}{{ end }}

{% include "files/_routines.sql" %}
{% include "files/_end.sql" %}
