-- From templates/counter_rollup_event.sql
DROP EVENT IF EXISTS {{ c.name }};

-- MariaDB runs events only after SET GLOBAL event_scheduler = ON.
CREATE EVENT {{ c.name }}
  ON SCHEDULE EVERY {{ every }}
  COMMENT {% filter sql_string %}Calls {{ c.name.typed() }}.{% endfilter %}
  DO CALL {{ c.name }}(NULL);
