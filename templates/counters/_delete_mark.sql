{{ table.over_checks()|before(0) }}DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND counter_id = 0;
