-- A connection always selects the same slot. On a multi-primary cluster, each node has its own value of
-- auto_increment_offset. With at least auto_increment_increment slots, no two nodes select the same slot. On a single
-- server, auto_increment_increment is 1. The values are the global ones: a session that is older than the cluster has others.
IF {{ table.nodes() }} = 1
