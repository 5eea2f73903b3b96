IF({{ slots }} < {{ table.nodes() }},
   {{ slots }},
   {{ slots }} - MOD({{ slots }}, {{ table.nodes() }}))
