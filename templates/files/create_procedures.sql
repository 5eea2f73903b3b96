{% include "files/_banner.sql" %}
--
-- Creates the routines and the views, and replaces existing ones. The table is not changed. Stops before any change if the
-- table or the privileges are not as the routines need them.
{%- if package.options.servers != Servers::Mariadb %}
-- MySQL cannot replace a routine in one statement: a call between DROP and CREATE fails with error 1305. DROP also
-- removes the privileges that were granted on the routine: source grants.sql again.
{%- endif %}
{%- let again = "the script again" %}
{%- include "files/_waits.sql" %}
{%- include "files/_notes.sql" %}

{% include "files/_session_begin.sql" %}
{%- if package.routine(R::Get).is_some() %}

{% include "files/_check_function.sql" %}
{%- endif %}

{% include "files/_check_table.sql" %}
{%- if package.options.kind == Kind::Counters && !package.options.per_counter() %}

{% include "files/_check_slots.sql" %}
{%- endif %}
{%- let leftovers = script.leftovers() %}

{{ script.routines_and_views_text() }}

{% if !leftovers.is_empty() -%}
-- Other options may have created these.
{{- leftovers }}

{% endif -%}
{% include "files/_session_end.sql" %}
