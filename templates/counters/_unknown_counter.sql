-- Why there are none is asked only now: a call that finds its counter makes one test.
{{ r.check_name() }}
{{ r.signal(E::UnknownCounter) }}
