-- The server creates the event enabled. An event that exists keeps its state. MariaDB disables the event scheduler by default:
-- SET GLOBAL event_scheduler = ON. If a call ends with an error, the server writes it to its error log.
CREATE EVENT IF NOT EXISTS {{ name }}
  ON SCHEDULE EVERY {{ every }}
  DO CALL {{ name }}(NULL);
ALTER
{%- include "shared/_definer.sql" %} EVENT {{ name }}
  ON SCHEDULE EVERY {{ every }}
  COMMENT {% filter sql_string %}Calls {{ name.typed() }}.{% endfilter %}
  DO CALL {{ name }}(NULL);
