{{ table.counted_from() }}FLOOR({{ random }} * {{ table.slots() }})
