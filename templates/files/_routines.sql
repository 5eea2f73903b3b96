{%- for procedure in script.procedures(replaces) -%}
{{ procedure }}{{ end }}

{% endfor -%}
{%- if replaces && !o.mariadb() -%}
SELECT 'DROP PROCEDURE has removed the privileges on the routines: source grants.sql now' AS next_step;

{% endif -%}
{% include "files/_views.sql" %}
{%- if let Some(function) = script.function(replaces) -%}
{{ end }}

-- Without SUPER, a server with a binary log rejects the function (1419); all the rest is there. Then read totals with
-- SELECT total FROM {{ package.totals }} WHERE .., or let an administrator
-- SET GLOBAL log_bin_trust_function_creators = 1.
{%- if replaces %}
-- The server rejects the next function in the same way, before {{ sql.routine(R::Get) }} is dropped.
DROP FUNCTION IF EXISTS {{ script.temporary() }};
CREATE FUNCTION {{ script.temporary() }}() RETURNS INT NO SQL RETURN 0;
DROP FUNCTION {{ script.temporary() }};{% endif %}
{{ function }}
{%- endif -%}
;;
