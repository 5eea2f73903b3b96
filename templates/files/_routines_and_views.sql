
{{ script.routines_and_views_text() }}

