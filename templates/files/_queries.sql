{% include "files/_banner.sql" %}
--
-- Each operation as a parameterized statement: for servers and proxies without stored routines, and for applications that
-- need the highest rate. The statements use the table of create_tables.sql and can be combined with the procedures.
{%- if !package.options.random() %}
--
-- The slot is computed from CONNECTION_ID(), so that a connection always selects the same slot. On a multi-primary cluster,
-- each node has its own value of auto_increment_offset: with at least auto_increment_increment slots, no two nodes select
-- the same slot. If connection IDs are not evenly distributed (TiDB assigns odd ones only), render with --pick random.
{%- endif %}
{%- include "files/_notes.sql" %}
