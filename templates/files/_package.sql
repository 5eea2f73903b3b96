CREATE{% if replaces %} OR REPLACE{% endif %}{{ sql.definer() }} SQL SECURITY {{ o.security.sql() }} VIEW {{ package.package }} AS
SELECT CAST({{ VERSION|sql_string }} AS CHAR CHARSET utf8mb4) AS version,
       CAST({{ o.description()|sql_string }} AS CHAR CHARSET utf8mb4) AS options
