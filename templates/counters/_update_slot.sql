{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET counter = counter + {{ amount }}
 WHERE {{ table.key.equals("") }}
   AND counter_id = {{ slot|indent(7) }}
{%- if !table.key.placeholders() %}
   AND CHAR_LENGTH(p_counter_name) <= {{ NAME_MAX }}
{%- endif -%}
;
