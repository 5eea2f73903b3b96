-- Stops if there is a problem: the server prints the name of a storage engine that it does not have. The prompt of a client continues
-- after an error: there, the rest of the script is rejected in a read-only session (1792).
{%- match package.options.servers %}
{%- when Servers::Both %}
/*!80000 SET SESSION transaction_read_only = IF(@slotted_problem IS NULL, @@SESSION.transaction_read_only, 1) */;
/*M!100000 SET SESSION tx_read_only = IF(@slotted_problem IS NULL, @@SESSION.tx_read_only, 1) */;
{%- when Servers::Mysql %}
SET SESSION transaction_read_only = IF(@slotted_problem IS NULL, @@SESSION.transaction_read_only, 1);
{%- when Servers::Mariadb %}
SET SESSION tx_read_only = IF(@slotted_problem IS NULL, @@SESSION.tx_read_only, 1);
{%- endmatch %}
SET SESSION default_storage_engine = COALESCE(@slotted_problem, @@SESSION.default_storage_engine);
