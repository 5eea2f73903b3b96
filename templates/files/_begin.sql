{% block comment -%}
{% if o.mariadb() -%}
-- MySQL has no innodb_snapshot_isolation and stops here (1193): render the package with --server mysql.
{%- else -%}
-- MariaDB has no server_uuid and stops here (1193): render the package with --server mariadb.{% endif %}
-- Sets what the server stores with each routine that is created. A CREATE or DROP that waits for a lock also makes
-- other sessions wait, so it waits {{ DDL_TIMEOUT }} s at most. The end of the script restores all settings.
{%- endblock %}
{% block statement -%}
SET @slotted_server = @@{% if o.mariadb() %}innodb_snapshot_isolation{% else %}server_uuid{% endif -%}
, @slotted_sql_mode = @@sql_mode,
    @slotted_lock_wait_timeout = @@lock_wait_timeout, @slotted_client = @@character_set_client,
    @slotted_collation = @@collation_connection, sql_mode = {{ SQL_MODE|sql_string }},
    lock_wait_timeout = {{ DDL_TIMEOUT }}, character_set_client = utf8mb4, {# -#}
    collation_connection = {{ o.collation().of_arguments() }}
{%- endblock %}
