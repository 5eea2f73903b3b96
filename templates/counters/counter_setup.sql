{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_description {{ table.varchar(DESCRIPTION_PARAMETER) }},
  IN p_slots BIGINT,
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Creates a counter with all its slots in one statement. Slot 1 gets the value.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters, compared by {{ package.options.collation }}
  p_description VARCHAR: description of the counter, at most {{ DESCRIPTION_MAX }} characters, or NULL
{%- if package.options.per_counter() %}
  p_slots BIGINT: number of slots, 1 to {{ MAX_SLOTS }}; NULL means {{ package.options.setup_slots() }}, or the number of nodes of a cluster if it is greater.
    Choose 4 slots for each connection that increments the counter concurrently, rounded up to a prime number.
{%- else %}
  p_slots BIGINT: NULL or {{ package.options.setup_slots() }}, the number of slots of every counter of this package
{%- endif %}
  p_value BIGINT: the initial total{% if package.options.bounded %}, at least 0{% endif %}; NULL means 0

Errors
{{ r.manual_errors() }}
  1265, 1406  p_description is longer than {{ DESCRIPTION_MAX }} characters (errors of the server)

Example
  CALL {{ r.name.typed() }}('{{ r.counter() }}', {% if package.options.bounded %}'Seats of the hall', NULL, 500{% else %}'Downloads of the installer', NULL, NULL{% endif %});
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT DEFAULT COALESCE(p_slots, {% if package.options.per_counter() %}GREATEST({{ package.options.setup_slots() }}, {{ table.nodes() }}){% else %}{{ package.options.setup_slots() }}{% endif %});
  DECLARE v_existing BIGINT;
  -- Another session has created the counter between the SELECT and the INSERT. Other errors reach the caller.
  DECLARE EXIT HANDLER FOR 1062
    {{ r.signal(E::CounterExists)|indent(4) }}

  {{ r.check()|indent(2) }}
  CALL {{ r.sibling(R::CheckSlots) }}({{ r.speaker_text() }}, v_slots);
{%- if package.options.bounded %}
  IF p_value < 0 THEN
    {{ r.signal(E::ValueNegative)|indent(4) }}
  END IF;
{%- endif %}

  -- Query the counter first: an INSERT that fails holds a lock on slot 1 until the caller commits.
  {{ table.last_slot("v_existing", "")|indent(2) }}
  IF v_existing IS NOT NULL THEN
    {{ r.signal(E::CounterExists)|indent(4) }}
  END IF;

  {{ table.create_counter("v_slots", "v_slots", "p_value", "p_description")|indent(2) }}
END
