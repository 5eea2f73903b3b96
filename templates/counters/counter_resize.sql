{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_slots BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
{%- if package.options.per_counter() %}
  Changes the number of slots of a counter. The total does not change, and concurrent increments are not lost.
{%- else %}
  Gives a counter that was created with other options the {{ package.options.setup_slots() }} slots of this package. The total does not change, and
  concurrent increments are not lost.
{%- endif %}
  Growing is one statement. Shrinking moves the counts of the slots after {{ table.slots_wanted() }} to slot 1 and deletes these slots. It
  repeats both statements until no slot after {{ table.slots_wanted() }} is left.
  A resize waits for transactions that have incremented the counter. If a resize is interrupted (error 1205, KILL, a lost
  connection), the total is correct. A second call completes the resize.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
{%- if package.options.per_counter() %}
  p_slots BIGINT: the new number of slots, 1 to {{ MAX_SLOTS }}
{%- else %}
  p_slots BIGINT: NULL or {{ package.options.setup_slots() }}, the number of slots of every counter of this package
{%- endif %}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads', {% if package.options.per_counter() %}64{% else %}NULL{% endif %});
{%- endfilter %}
BEGIN
  DECLARE v_last BIGINT;
  DECLARE v_rows BIGINT;
  DECLARE v_total DECIMAL(65, 0);

  {{ r.check_name()|indent(2) }}
{%- if package.options.per_counter() %}
  IF p_slots IS NULL OR p_slots < 1 OR p_slots > {{ MAX_SLOTS }} THEN
    {{ r.signal(E::SlotsOutOfRange)|indent(4) }}
  END IF;
{%- else %}
  IF p_slots <> {{ package.options.setup_slots() }} THEN
    {{ r.signal(E::SlotsFixed)|indent(4) }}
  END IF;
{%- endif %}
  SELECT MAX(counter_id), COUNT(*), SUM(IF(counter_id = 1 OR counter_id > {{ table.slots_wanted() }}, counter, 0))
    INTO v_last, v_rows, v_total
    FROM {{ table.name }}
   WHERE counter_name = p_counter_name;
  IF v_last IS NULL THEN
    {{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;

  IF {{ table.slots_wanted() }} < v_last THEN
    IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
      {{ r.signal(E::TotalOutOfRange)|indent(6) }}
    END IF;
    REPEAT
      {{ table.fold(table.slots_wanted())|indent(6) }}

      -- A locking read, because a read of the snapshot of the transaction would return the deleted slots.
      {{ table.over_snapshot()|before(6) }}SELECT IF(MIN(counter_id) = 1, COUNT(*) - 1, 0)
        INTO v_rows
        FROM {{ table.name }}
       WHERE counter_name = p_counter_name
         AND (counter_id = 1 OR counter_id > {{ table.slots_wanted() }})
        LOCK IN SHARE MODE;
    UNTIL v_rows = 0 END REPEAT;
  ELSEIF {{ table.slots_wanted() }} > v_rows THEN
    -- Missing slots between 1 and the last slot are inserted too.
    {{ table.insert_slots("first.counter_name = p_counter_name
   AND numbers.number > IF(v_rows = v_last, v_last, 1)")|indent(4) }}
  END IF;
END
