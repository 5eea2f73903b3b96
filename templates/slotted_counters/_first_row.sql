-- The row that the counts go to, where it is not there yet.
{{ table.upsert("0", "0") }}
