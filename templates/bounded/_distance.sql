MOD({{ table.slot() }} - {{ own }} + {{ slots }}, {{ slots }})
  + IF(MOD({{ table.slot() }} - {{ own }}, {{ table.nodes() }}) = 0, 0, 100000)
