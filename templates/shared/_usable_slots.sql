{{ slots }} - MOD({{ slots }}, LEAST({{ slots }}, {{ table.nodes() }}))
