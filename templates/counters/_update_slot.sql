{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET counter = counter {{ change }}
 WHERE {{ table.key.equals("") }}
   AND counter_id = {{ slot|indent(7) }}
{%- if !condition.is_empty() %}
   AND {{ condition }}
{%- endif %}
{%- if !table.key.placeholders() %}
   AND CHAR_LENGTH(p_counter_name) <= {{ NAME_MAX }}
{%- endif -%}
;
