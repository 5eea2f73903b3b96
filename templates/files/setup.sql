{% import "macros.sql" as m -%}
{% include "files/_banner.sql" %}
-- Creates the table, the routines and the views in the current database. Replaces nothing: mysql DATABASE < setup.sql

{% let replaces = false -%}
{% let end = ";" -%}
{% include "files/_begin.sql" %}
{% include "files/_check.sql" -%}
{% include "files/_table.sql" %}{{ end }}

{% include "files/_routines.sql" %}
{% include "files/_end.sql" %}
