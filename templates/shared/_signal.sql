CALL {{ fail }}({{ signal.number }}, {{ signal.message }});
