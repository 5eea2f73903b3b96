-- Stops if there is a problem. SIGNAL cannot depend on a condition outside a routine, but the server prints the name of
-- a storage engine that it does not have.
SET SESSION default_storage_engine = COALESCE(@slotted_problem, @@SESSION.default_storage_engine);
