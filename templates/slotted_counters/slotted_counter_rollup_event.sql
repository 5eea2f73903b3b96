-- From templates/slotted_counters/slotted_counter_rollup_event.sql
-- The event is created disabled, and import.sql enables it. An existing event stays enabled. MariaDB disables the event
-- scheduler by default: SET GLOBAL event_scheduler = ON.
CREATE EVENT IF NOT EXISTS {{ name }}
  ON SCHEDULE EVERY {{ every }}
  DISABLE
  DO CALL {{ name }}(NULL);
ALTER
{%- if let Some(definer) = package.options.definer.as_ref() %} DEFINER = {{ definer }}{% endif %} EVENT {{ name }}
  ON SCHEDULE EVERY {{ every }}
  COMMENT {% filter sql_string %}Calls {{ name.typed() }}.{% endfilter %}
  DO CALL {{ name }}(NULL);
