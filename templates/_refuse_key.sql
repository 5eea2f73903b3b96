-- Why there are none is asked only now: a call that finds its counter makes one test.
{{ c.check_key() }}
{{ c.signal(E::UnknownCounter) }}
