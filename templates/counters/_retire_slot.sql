-- A retired slot has a negative number, which no increment selects, and keeps its count.
{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET counter_id = -counter_id
 WHERE {{ table.key.equals("") }}
   AND counter_id = {{ slot }};
