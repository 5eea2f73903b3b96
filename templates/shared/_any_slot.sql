{{ table.counted_from() }}FLOOR(RAND() * {{ table.slots() }})
