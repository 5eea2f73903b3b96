-- Without SUPER, a server with a binary log rejects the function (1419); all the rest is there. Then read totals from
-- {{ package.totals }}, or let an administrator SET GLOBAL log_bin_trust_function_creators = 1.
{%- if sql.replaces() %}
-- The server rejects the next function in the same way, before {{ sql.routine(R::Get) }} is dropped.
{%- endif %}
