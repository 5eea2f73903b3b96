{#- A read of a global variable takes 1 to 3 us: a single server reads one. -#}
{{ table.counted_from() }}IF({{ table.nodes() }} = 1, MOD(CONNECTION_ID(), {{ slots }}), MOD(
  CONNECTION_ID() * {{ table.nodes() }} + {{ table.node() }},
  {{ usable|indent(2) }}))
