CALL {{ r.sibling(R::Check) }}({{ r.speaker_text() }}, {{ table.key.raw_arguments() }});
