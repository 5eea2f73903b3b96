{{ table.counted_from() }}MOD(CONNECTION_ID(), {{ slots }})
