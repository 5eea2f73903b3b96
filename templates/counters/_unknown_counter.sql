-- The name is validated only if the counter was not found, so that the normal case needs no check.
{{ r.check_name() }}
{{ r.signal(E::UnknownCounter) }}
