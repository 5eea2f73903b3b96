-- From templates/slotted_counters/slotted_counter_rollup_event.sql
DROP EVENT IF EXISTS {{ rollup.name }};

-- MariaDB disables the event scheduler by default: SET GLOBAL event_scheduler = ON.
CREATE EVENT {{ rollup.name }}
  ON SCHEDULE EVERY {{ every }}
  COMMENT {% filter sql_string %}Calls {{ rollup.name.typed() }}.{% endfilter %}
  DO CALL {{ rollup.name }}(NULL);
