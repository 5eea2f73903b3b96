{{ table.counted_from() }}FLOOR({{ random }} * {{ slots }})
