-- The event is created disabled, and import.sql enables it. An existing event stays enabled. MariaDB disables the event
-- scheduler by default: SET GLOBAL event_scheduler = ON.
CREATE EVENT IF NOT EXISTS {{ name }}
  ON SCHEDULE EVERY {{ every }}
  DISABLE
  DO CALL {{ name }}(NULL);
ALTER
{%- include "shared/_definer.sql" %} EVENT {{ name }}
  ON SCHEDULE EVERY {{ every }}
  COMMENT {% filter sql_string %}Calls {{ name.typed() }}.{% endfilter %}
  DO CALL {{ name }}(NULL);
