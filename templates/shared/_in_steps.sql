SET v_slot = {{ MAX_SLOTS }} + 1;
REPEAT
  BEGIN
    {{ table.repeat_step()|indent(4) }}

    {{ table.next_slot()|indent(4) }}
    {{ statements|indent(4) }}
  END;
UNTIL v_slot = {{ table.first_slot() }} END REPEAT;
