{{ table.over_snapshot()|before(0) }}DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND counter_id = -{{ slot }};
