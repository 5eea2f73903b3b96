{{ table.counted_from() }}MOD(
  CONNECTION_ID() * {{ table.nodes() }} + {{ table.node() }},
  {{ usable|indent(2) }})
