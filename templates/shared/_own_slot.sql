{{ table.counted_from() }}MOD(CONNECTION_ID(), {{ table.slots() }})
