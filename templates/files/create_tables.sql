{{ sql.banner() }}
-- Creates the table. Fails with 1050 if it exists. create_procedures.sql creates the views and the routines.

{% include "files/_table.sql" %};
