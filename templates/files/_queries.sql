{% include "files/_banner.sql" %}
--
-- Each operation as a parameterized statement: for servers and proxies without stored routines, and for applications that
-- need the highest rate. The statements use the table of create_tables.sql and can be combined with the procedures, and with
-- each other in any order: each one leaves the total right. The connection has the character set utf8mb4: with another one, the driver or
-- the server replaces characters of a key that this set lacks.
{%- if package.options.bounded %}
-- None makes a slot negative. If one would, for example add with a negative amount, the server rejects it and nothing is changed:
-- error 3819 on MySQL, 4025 on MariaDB (unless the session has set check_constraint_checks = OFF, which no statement here needs).
{%- endif %}
{%- if !package.options.random() %}
--
-- A connection always selects the same slot. On a multi-primary cluster, use the statements whose names end with on_nodes: each
-- node has its own value of auto_increment_offset, so that no two nodes select the same slot.
-- If connection IDs are not evenly distributed (TiDB assigns odd ones only), render with --pick random.
{%- endif %}
{%- include "files/_notes.sql" %}
