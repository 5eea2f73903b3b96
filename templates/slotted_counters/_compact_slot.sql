-- A slot that another node writes at the same time is left: the next step is that of the next slot.
SET v_slot = v_next,
    v_tries = 0;
{{ table.first_row() }}
{{ table.fold(table.next_and_first(), table.first_slot()) }}
{{ table.delete_folded(table.next_and_first()) }}
