import pymysql, threading, time, random, sys, os, re
HERE = os.path.dirname(os.path.abspath(__file__))
SERVERS = {n: '/dev/shm/bounded-%s/s' % n for n in ('mysql9.7', 'mariadb10.11', 'mariadb11.8')}
def connect(server, db=None, autocommit=True, isolation=None, mode=None, **more):
    c = pymysql.connect(unix_socket=SERVERS[server], user='root', database=db, autocommit=autocommit, charset='utf8mb4', **more)
    if isolation: c.cursor().execute('SET SESSION TRANSACTION ISOLATION LEVEL ' + isolation)
    if mode is not None: c.cursor().execute('SET SESSION sql_mode = %s', mode)
    return c
def run(c, sql, *args):
    k = c.cursor(); n = k.execute(sql, args or None); r = k.fetchall()
    while k.nextset(): pass
    return list(r) if r else []
def value(c, sql, *args): return run(c, sql, *args)[0][0]
def errno(c, sql, *args):
    try: run(c, sql, *args)
    except pymysql.err.MySQLError as e: return e.args[0], (e.args[1] if len(e.args) > 1 else '')
    return 0, ''
TEN = False   # renders the keyed packages with 10 slots instead of 521
def script(c, path):
    """Runs a script as a client does, with DELIMITER."""
    delimiter = ';'
    with open(path) as f: text = f.read()
    if TEN: text = text.replace('521', '10').replace('522', '11')
    lines, text = text.splitlines(True), ''
    for line in lines:
        if line.upper().startswith('DELIMITER '): delimiter = line.split()[1]; continue
        if not text and (not line.strip() or line.startswith('-- ')): continue
        text += line
        stripped = line.rstrip()
        if stripped.endswith(delimiter):
            c.cursor().execute(text.rstrip()[:-len(delimiter)]); text = ''
    assert not text.strip(), text
def fresh(server, *scripts):
    c = connect(server); db = 'bounded_%d_%d' % (os.getpid(), random.randrange(10**6))
    run(c, 'CREATE DATABASE ' + db + ' CHARACTER SET latin1'); run(c, 'USE ' + db)
    for s in scripts: script(c, s)
    return db, c
def drop(c, db): run(c, 'DROP DATABASE ' + db)
def slotted(server, db, slots, slot, first=1, **more):
    """A connection whose slot is `slot` (first + id MOD slots)."""
    while True:
        c = connect(server, db, **more)
        if first + c.thread_id() % slots == slot: return c
        c.close()
class Later:
    """A statement in another thread."""
    def __init__(self, c, sql, *args):
        self.result = None
        def f(): self.result = errno(c, sql, *args)
        self.t = threading.Thread(target=f, daemon=True); self.t.start(); self.t.join(0.25)
    def waits(self): return self.t.is_alive()
    def end(self, timeout=20):
        self.t.join(timeout); assert not self.t.is_alive(), 'still waits'; return self.result
def servers(): return [a for a in sys.argv[1:] if a in SERVERS] or list(SERVERS)
OLD = 'generated'
NEW = os.path.dirname(HERE)
class Named:
    name, file, prefix, table, count = 'named', NEW + '/bounded_counters.sql', 'bounded_counter_', 'bounded_counters', 'counter'
    key, where, setup = "'s'", "counter_name = 's'", "CALL bounded_counter_setup('s', NULL, %d, %d)"
    first, slot = 1, 'counter_id'
    @classmethod
    def make(k, c, slots, value): run(c, k.setup % (slots, value))
class Keyed:
    name, file, prefix, table, count = 'keyed', NEW + '/bounded_slotted_counters.sql', 'bounded_slotted_counter_', 'bounded_slotted_counters', 'count'
    key, where = "1, 7", "record_type = 1 AND record_id = 7"
    first, slot = 0, 'slot'
    @classmethod
    def make(k, c, slots, value): run(c, 'CALL bounded_slotted_counter_setup(1, 7, %d)' % value)
def kinds(): return [k for k in (Named, Keyed) if k.name in sys.argv[1:] or not {'named', 'keyed'} & set(sys.argv[1:])]
def call(k, what, *args): return 'CALL %s%s(%s)' % (k.prefix, what, ', '.join([k.key] + [str(a) for a in args]))
def total(k, c): return int(value(c, 'SELECT COALESCE(SUM(`%s`), 0) FROM %s WHERE %s' % (k.count, k.table, k.where)))
def rows(k, c): return run(c, 'SELECT %s, `%s` FROM %s WHERE %s ORDER BY 1' % (k.slot, k.count, k.table, k.where))
def least(k, c): return value(c, 'SELECT COALESCE(MIN(`%s`), 0) FROM %s' % (k.count, k.table))
def arg(name, default): return int(([a[len(name) + 1:] for a in sys.argv if a.startswith(name + '=')] or [default])[0])
