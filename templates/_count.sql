{%- if c.per_counter() -%}
{{ c.last_slot("v_slots") }}
{% endif %}
{%- if c.random() && check -%}
{{ c.check_key() }}

{% endif %}
{%- if c.keyed() -%}
-- On the primary key, the only unique one, this locks one record and no gap.
{% else -%}
-- The look at the length is for names that a server without strict mode has cut: they may equal a shorter one and its
-- spaces.
{% endif %}
{%- if c.random() -%}
SET v_slot = {{ c.slot_number() }};
{{ c.count_in(amount, "v_slot") }}
{%- else -%}
-- Always the same slot for one connection. On a multi-primary cluster the server sets the two variables on each
-- node, and no two nodes share a slot; elsewhere both are 1, and one test and one statement is all there is.
IF @@auto_increment_increment = 1
{%- if check %}
  AND {{ c.key_fits() }}
{%- endif %} THEN
  {{ c.count_in(amount, c.slot_number())|indent(2) }}
ELSE
{%- if check %}
  {{ c.check_key()|indent(2) }}
{%- endif %}
  BEGIN
    DECLARE v_slot BIGINT
      DEFAULT {{ c.counted_from() }}MOD(
        CONNECTION_ID() * @@auto_increment_increment + @@auto_increment_offset - 1,
        IF({{ c.slots() }} < @@auto_increment_increment,
           {{ c.slots() }},
           {{ c.slots() }} - MOD({{ c.slots() }}, @@auto_increment_increment)));
    {{ c.count_in(amount, "v_slot")|indent(4) }}
  END;
END IF;
{%- endif %}
{%- if !c.keyed() %}
IF ROW_COUNT() = 0 THEN
  -- The slot is gone since it was picked (a resize), or the counter is younger than the snapshot of this
  -- transaction. Slot 1 is always there. Picking again would loop in an old snapshot.
  {{ c.count_in(amount, "1")|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    {{ c.refuse_key()|indent(4) }}
  END IF;
END IF;
{%- endif %}
