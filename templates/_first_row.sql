-- The row that the counts go to, where it is not there yet.
{{ c.upsert("0", "0") }}
