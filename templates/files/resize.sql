{% include "files/_banner.sql" %}
--
-- Gives every counter with fewer than {{ package.options.setup_slots() }} slots the missing ones. The totals do not change. Source it before
-- create_procedures.sql if the counters were created with fewer slots. Counters with more slots are valid too: after
-- create_procedures.sql, CALL {{ package.routine(R::Resize).expect("counters have it").typed() }}('...', NULL) removes the slots that no increment selects.
-- Commits, whatever the defaults of the session are.

{% include "files/_session_begin.sql" %}

{{ table.insert_slots(table.missing_slots()) }}
-- With NO CHAIN NO RELEASE, because completion_type can end the connection at a COMMIT.
COMMIT AND NO CHAIN NO RELEASE;

{% include "files/_session_end.sql" %}
