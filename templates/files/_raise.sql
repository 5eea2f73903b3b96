-- If there is a problem, the second SET fails with error 1286, which quotes it. The prompt of a client continues: the rest fails with 1792.
SET SESSION {% include "files/_read_only.sql" %} = IF(@slotted_problem IS NULL, @slotted_read_only, 1);
SET SESSION default_storage_engine = COALESCE(@slotted_problem, @@SESSION.default_storage_engine);
