counter_id BETWEEN 1 AND {{ table.nodes() }}
