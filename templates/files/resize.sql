{% include "files/_banner.sql" %}
--
-- Gives every counter with fewer than {{ package.options.setup_slots() }} slots the missing ones. The totals do not change. Source it before
-- create_procedures.sql if the counters were created with fewer slots. Counters with more slots are valid too: after
-- create_procedures.sql, CALL {{ package.routine(R::Resize).expect("counters have it").typed() }}('...', NULL) removes the slots that no increment selects.

{{ table.insert_slots(table.missing_slots()) }}
