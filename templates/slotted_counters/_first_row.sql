-- Creates slot 0 if it does not exist.
{{ table.upsert("0", "0") }}
