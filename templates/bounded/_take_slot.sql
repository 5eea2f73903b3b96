{{ table.over_snapshot()|before(0) }}UPDATE {{ table.name }}
   SET {{ table.count() }} = {{ table.count() }} - {{ amount }}
 WHERE {{ table.key.equals("") }}
   AND slot = {{ slot|indent(7) }}
   AND {{ table.count() }} >= {{ amount }}
