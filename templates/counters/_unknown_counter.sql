-- In the normal case, the name needs no validation.
{{ r.check_name() }}
{{ r.signal(E::UnknownCounter) }}
