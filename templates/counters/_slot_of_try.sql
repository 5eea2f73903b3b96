IF(v_tries = 0, entries.slot, 1 + MOD(entries.slot - 1, {{ table.nodes() }}))
