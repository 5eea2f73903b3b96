-- Always the same slot for one connection. On a multi-primary cluster the server sets the two variables on each
-- node, and no two nodes share a slot; elsewhere both are 1, and one test and one statement is all there is.
IF @@auto_increment_increment = 1
