
--
-- A statement that waits for transactions which have used an object ends after {{ DDL_TIMEOUT }} s with error 1205, because the calls of all other sessions
-- wait behind it{% if package.options.servers != Servers::Mariadb %} (MySQL shows them in performance_schema.metadata_locks){% endif %}. Source {{ again }} when these transactions have ended.
