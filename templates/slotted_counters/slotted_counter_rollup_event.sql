-- From templates/slotted_counters/slotted_counter_rollup_event.sql
{{ drop|before(0) }}
-- MariaDB disables the event scheduler by default: SET GLOBAL event_scheduler = ON.
CREATE{{ rollup.package.options.servers.or_replace() }}
{%- if let Some(definer) = rollup.package.options.definer.as_ref() %} DEFINER = {{ definer }}{% endif %} EVENT {{ rollup.name }}
  ON SCHEDULE EVERY {{ every }}
  COMMENT {% filter sql_string %}Calls {{ rollup.name.typed() }}.{% endfilter %}
  DO CALL {{ rollup.name }}(NULL);
