{#- Texts that several templates need, and in which a difference between them would be a bug. -#}

{#- The slot of the connection. `first`: the number of the first slot with a plus; `slots`: their number. -#}
{% macro slot(o, first, slots) -%}
{%- if o.cluster -%}
{{ first }}MOD(CONNECTION_ID() * @@GLOBAL.auto_increment_increment + @@GLOBAL.auto_increment_offset - 1,
    {{ slots }} - MOD({{ slots }}, LEAST({{ slots }}, @@GLOBAL.auto_increment_increment)))
{%- else -%}
{{ first }}MOD(CONNECTION_ID(), {{ slots }}){%- endif -%}
{%- endmacro %}

{#- Sets v_slot to the slot of the connection of a named counter, or to NULL. -#}
{% macro select_slot(sql, o) -%}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT {{ slot(o, "1 + ", "MAX(counter_id)") }}
    INTO v_slot
    FROM {{ o.table }}
   WHERE counter_name = p_counter_name;
{%- endmacro %}

{#- Rejects a number of slots. -#}
{% macro check_slots(sql, o, slots) -%}{% if o.per_counter() -%}
IF {{ slots }} NOT BETWEEN 1 AND {{ MAX_SLOTS }} THEN
    CALL {{ sql.routine(R::Fail) }}(30005,
      CONCAT('{{ sql.name.name() }}: p_slots must be between 1 and {{ MAX_SLOTS }}, not ', COALESCE(p_slots, 'NULL')));
  END IF;
{%- else -%}
IF p_slots <> {{ o.setup_slots() }} THEN
    CALL {{ sql.routine(R::Fail) -}}
      (30006, CONCAT('{{ sql.name.name() }}: p_slots must be NULL or {{ o.setup_slots() }}, not ', p_slots));
  END IF;
{%- endif -%}
{%- if o.in_steps() %}
  IF {{ sql.slots("p_slots") }} < @@GLOBAL.auto_increment_increment THEN
    CALL {{ sql.routine(R::Fail) }}(30018,
      CONCAT('{{ sql.name.name() }}: this cluster needs at least ', @@GLOBAL.auto_increment_increment, ' slots'));
  END IF;
{%- endif -%}
{%- endmacro %}

{#- Sets a variable, but not in a transaction. -#}
{% macro outside_of_transaction(o, set) -%}
-- Outside of any transaction, SAVEPOINT does nothing, so RELEASE fails (1305). In all other cases, it works.
  BEGIN
    DECLARE EXIT HANDLER FOR 1305 SET {{ set }};
{%- if o.mariadb() %}
    -- Not if @@in_transaction: a savepoint in a trigger would prevent the rollback of a statement that fails. Alone, it
    -- does not tell: it is also 0 with autocommit = 0, and in a trigger under autocommit.
    IF NOT @@in_transaction THEN SAVEPOINT slotted; RELEASE SAVEPOINT slotted; END IF;
{%- else %}
    SAVEPOINT slotted; RELEASE SAVEPOINT slotted;
{%- endif %}
  END;
{%- endmacro %}

{#- The numbers from 1 to `count`, as a table. -#}
{% macro numbers(count) -%}
JSON_TABLE(CONCAT('[0', REPEAT(',0', {{ count }} - 1), ']'), '$[*]' COLUMNS (number FOR ORDINALITY))
{%- endmacro %}

{#- The beginning of a statement that creates a view. -#}
{% macro create_view(sql, o, name) -%}
CREATE{% if sql.replaces() %} OR REPLACE{% endif %}{{ sql.definer() }} {# -#}
SQL SECURITY {{ o.security.sql() }} VIEW {{ name }} AS
{%- endmacro %}

{#- With --cluster, the condition that this node writes the slot. -#}
{% macro own(o, slot) -%}
{%- if o.cluster %} AND
             MOD({{ slot }}, @@GLOBAL.auto_increment_increment) = {# -#}
             MOD(@@GLOBAL.auto_increment_offset - 1, @@GLOBAL.auto_increment_increment){% endif -%}
{%- endmacro %}
