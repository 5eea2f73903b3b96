{%- if c.per_counter() -%}
{{ c.last_slot("v_slots") }}
{% endif %}
{%- if c.random() -%}
SET v_slot = {{ c.counted_from() }}FLOOR(RAND() * {{ c.slots() }});
{%- else -%}
-- Always the same slot for one connection. On a multi-primary cluster the server sets the two variables on each
-- node, and no two nodes share a slot; elsewhere both are 1.
IF @@auto_increment_increment = 1 THEN
  SET v_slot = {{ c.counted_from() }}MOD(CONNECTION_ID(), {{ c.slots() }});
ELSE
  SET v_slot = {{ c.counted_from() }}MOD(
    CONNECTION_ID() * @@auto_increment_increment + @@auto_increment_offset - 1,
    IF({{ c.slots() }} < @@auto_increment_increment,
       {{ c.slots() }},
       {{ c.slots() }} - MOD({{ c.slots() }}, @@auto_increment_increment)));
END IF;
{%- endif %}
