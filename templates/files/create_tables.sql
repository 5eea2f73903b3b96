{% include "files/_banner.sql" %}
--
-- Creates the table{% if !package.options.rollups.is_empty() %}s{% endif %}. create_procedures.sql creates the routines and the views.

{% include "files/_session_begin.sql" %}

{% include "files/_table.sql" %}
{%- for rollup in script.rollups() %}

{{ rollup.create_written() }}
{%- endfor %}

{% include "files/_session_end.sql" %}
