CREATE PROCEDURE {{ r.name }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_description {{ table.varchar(DESCRIPTION_MAX) }},
  IN p_slots BIGINT,
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Creates a counter with all its slots, in one statement. The value goes into slot 1.

Parameters
  p_counter_name  the name, at most {{ NAME_MAX }} characters, compared by {{ package.options.collation }}
  p_description   what is counted, at most {{ DESCRIPTION_MAX }} characters, or NULL
{%- if package.options.per_counter() %}
  p_slots         the number of slots, 1 to {{ MAX_SLOTS }}; NULL means {{ package.options.setup_slots() }}.
                  Best is a few more than the connections that increment at once.
{%- else %}
  p_slots         NULL or {{ package.options.setup_slots() }}: this package has that number for every counter
{%- endif %}
  p_value         the first total; NULL means 0

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads', 'Downloads of the installer', NULL, NULL);
{%- endfilter %}
BEGIN
  DECLARE v_slots BIGINT;
  DECLARE v_existing BIGINT;
  -- Another session created the counter between the look-up and the INSERT. No other error
  -- is handled: the caller has to see it.
  DECLARE EXIT HANDLER FOR 1062
    {{ r.signal(E::CounterExists)|indent(4) }}

  {{ r.check_name()|indent(2) }}
{%- if package.options.per_counter() %}
  SET v_slots = COALESCE(p_slots, {{ package.options.setup_slots() }});
  IF v_slots < 1 OR v_slots > {{ MAX_SLOTS }} THEN
    {{ r.signal(E::SlotsOutOfRange)|indent(4) }}
  END IF;
{%- else %}
  SET v_slots = COALESCE(p_slots, {{ package.options.setup_slots() }});
  IF v_slots <> {{ package.options.setup_slots() }} THEN
    {{ r.signal(E::SlotsFixed)|indent(4) }}
  END IF;
{%- endif %}

  -- Looked up first, because a failed INSERT would leave a lock on slot 1 until the caller commits.
  {{ table.last_slot("v_existing")|indent(2) }}
  IF v_existing IS NOT NULL THEN
    {{ r.signal(E::CounterExists)|indent(4) }}
  END IF;

  -- In the order of the key, so that two sessions that create one counter at once cannot deadlock.
  INSERT INTO {{ table.name }} (counter_name, counter_id, description, start_date, counter)
  SELECT p_counter_name, numbers.number, p_description, NOW(), IF(numbers.number = 1, COALESCE(p_value, 0), 0)
    FROM (
      {{ table.numbers("v_slots")|indent(6) }}
    ) AS numbers
   WHERE numbers.number <= v_slots
   ORDER BY numbers.number;
END
