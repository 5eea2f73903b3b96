"""B1 to B7 and R1, R2, R7 to R11 of the field notes where they concern bounded counters: on the old package (red) and on the new one (green).
bugs.py [servers]"""
import lib
from lib import *
lib.TEN = True
OLDN, OLDK = OLD + '/counters/setup.sql', OLD + '/slotted_counters/setup.sql'
class OldNamed(Named):
    file, prefix, table, setup = OLDN, 'counter_', 'counters', "CALL counter_setup('s', NULL, %d, %d)"
class OldKeyed(Keyed):
    file, prefix, table = OLDK, 'slotted_counter_', 'slotted_counters'
    @classmethod
    def make(k, c, slots, value): run(c, 'INSERT INTO slotted_counters VALUES (1, 7, 0, %d)' % value)
def conn(server, k, db, n, slots, **m):
    """A connection with CONNECTION_ID() MOD slots = n."""
    return slotted(server, db, slots, n % slots, first=0, **m)
def N(k): return 10
def put(k, c, n, amount):
    """The slot of a connection with CONNECTION_ID() MOD slots = n."""
    s = n + (0 if k is OldKeyed else 1)
    if k.slot == 'slot': run(c, 'INSERT INTO %s VALUES (1, 7, %d, %d) ON DUPLICATE KEY UPDATE `count` = %d' % (k.table, s, amount, amount))
    else: run(c, "UPDATE %s SET counter = %d WHERE counter_id = %d" % (k.table, amount, s))
def B1(server, k, db, w):
    if k.slot == 'slot': return None
    k.make(w, 2, 30); x, y = conn(server, k, db, 1, 2), conn(server, k, db, 0, 2)
    run(x, call(k, 'take', 1))
    if errno(y, "CALL %sadd_many('[[\"s\", -20]]')" % k.prefix)[0] == 30020: run(y, call(k, 'add', -20))
    e = errno(x, call(k, 'take', 14)); return e[0] == 30016 and total(k, w) == 9, (e, rows(k, w))
def B2(server, k, db, w):
    if k.slot == 'slot': return None
    k.make(w, 2, 30); x, y = conn(server, k, db, 0, 2), conn(server, k, db, 1, 2)
    run(y, 'START TRANSACTION'); run(y, 'SELECT %sget(%s)' % (k.prefix, k.key)); run(x, call(k, 'take', 1))
    run(y, call(k, 'add', -20)); run(y, 'COMMIT')
    e = errno(x, call(k, 'take', 14)); return e[0] == 30016 and total(k, w) == 9, (e, rows(k, w))
def B3(server, k, db, w):
    out = []
    for level in ('READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ'):
        run(w, 'DELETE FROM ' + k.table); k.make(w, 10, 0); put(k, w, 5, 10)
        a, b, c = [conn(server, k, db, n, N(k), isolation=level) for n in (5, 5, 7)]
        run(a, 'START TRANSACTION'); run(a, call(k, 'increment')); B = Later(b, call(k, 'take', 10)); C = Later(c, call(k, 'add', -8))
        run(a, 'ROLLBACK'); rb, rc = B.end()[0], C.end()[0]
        out.append((sorted((rb, rc)) == [0, 30016] and total(k, w) == 10 - (10 if rb == 0 else 8), level, rb, rc, total(k, w)))
    return all(o[0] for o in out), out
def B4(server, k, db, w):
    if k.slot != 'slot': return None
    k.make(w, 10, 0); most, taken = 0, 0
    for n in range(10): put(k, w, n, 30)
    for i in range(300):
        if k is OldKeyed: slot = 'FLOOR(RAND() * 10)'           # as --pick random renders it today
        else: slot = str(random.randrange(1, 11))               # a value: the statement has no other form
        n = w.cursor().execute('UPDATE %s SET `count` = `count` - 1 WHERE record_type = 1 AND record_id = 7 AND slot = %s AND `count` >= 1' % (k.table, slot))
        most = max(most, n); taken += min(n, 1)
    return most <= 1 and total(k, w) == 300 - taken, ('rows of one statement', most, 'taken', taken, 'left', total(k, w))
def B5(server, k, db, w):
    if k.slot != 'slot': return None
    k.make(w, 10, 0); put(k, w, 5, 10); c = connect(server, db)
    if k is OldKeyed:                                           # compact_slots says (5, 10); then another connection takes 6
        add = 'INSERT INTO slotted_counters VALUES (1, 7, %d, %d) ON DUPLICATE KEY UPDATE `count` = `count` + %d'
        run(c, 'UPDATE slotted_counters SET `count` = `count` - 6 WHERE slot = 5'); run(w, 'START TRANSACTION'); run(w, add % (0, 10, 10)); run(w, add % (5, -10, -10)); run(w, 'COMMIT')
        e = errno(conn(server, k, db, 0, 10), 'UPDATE slotted_counters SET `count` = `count` - 8 WHERE slot = 0 AND `count` >= 8')[0]
    else:
        qs = dict((b.split('\n', 1)[0], b.split('\n', 1)[1]) for b in open(NEW + '/bounded_slotted_counters_queries.sql').read().split('-- name: ')[1:])
        st = lambda n: '\n'.join(l for l in qs[n].split('\n') if not l.startswith('--')).strip().rstrip(';')
        q = lambda c, n, *a: c.cursor().execute(st(n).replace('?', '%s'), a)
        q(w, 'first_slot', 1, 7); assert q(c, 'take_from_slot', 6, 1, 7, 6, 6) == 1
        q(w, 'compact', 1, 7, 1, 7); q(w, 'compact_rest', 1, 7, 1, 7, 1, 7)
        e = q(c, 'take_from_slot', 8, 1, 7, 0, 8)
        assert e == 0 and rows(k, w) == [(0, 4)], rows(k, w)
        q(w, 'reset', 9, 1, 7, 1, 7); q(w, 'increment', 1, 7); q(w, 'add', 1, 7, 2, 2); assert total(k, w) == 12
        assert errno(w, st('add').replace('?', '%s'), 1, 7, -5, -5)[0] in (3819, 4025) and total(k, w) == 12
        assert q(w, 'take', 2, 1, 7, 2) == 1 and total(k, w) == 10
        q(w, 'delete', 1, 7, 1, 7, 1, 7); assert rows(k, w) == []
    return total(k, w) >= 0 and least(k, w) >= 0, rows(k, w)
def B6(server, k, db, w):
    k.make(w, 10, 0); put(k, w, 5, 1000)
    if k.slot == 'slot': run(w, 'DELETE FROM %s WHERE slot = 0' % k.table)
    x, y, t = [conn(server, k, db, n, N(k)) for n in (7, 7, 9)]
    for c in (x, y, t): run(c, 'START TRANSACTION')
    run(x, call(k, 'take', 1)); Y = Later(y, call(k, 'increment')); T = Later(t, call(k, 'take', 600)); run(x, 'COMMIT')
    T.t.join(0.3)
    if T.t.is_alive() and Y.t.is_alive() is False: run(y, 'COMMIT')
    e = T.end(); run(t, 'COMMIT'); Y.end(); run(y, 'COMMIT'); return e[0] == 0 and total(k, w) == 400, (e, total(k, w))
def B7(server, k, db, w):
    k.make(w, 10, 0); put(k, w, 5, 5)
    if k.slot == 'slot': run(w, 'DELETE FROM %s WHERE slot = 0' % k.table)
    t = conn(server, k, db, 3, N(k)); run(t, 'START TRANSACTION'); run(t, 'SELECT * FROM ' + k.table); run(w, call(k, 'delete'))
    e = errno(t, call(k, 'take', 1)); run(t, 'COMMIT'); return e[0] in (30016, 30003) and rows(k, w) == [], (e, rows(k, w))
def B7own(server, k, db, w):
    """The same, and the slot of the connection has the amount in the snapshot."""
    k.make(w, 10, 0); put(k, w, 3, 5)
    if k.slot == 'slot': run(w, 'DELETE FROM %s WHERE slot = 0' % k.table)
    t = conn(server, k, db, 3, N(k)); run(t, 'START TRANSACTION'); run(t, 'SELECT * FROM ' + k.table); run(w, call(k, 'delete'))
    e = errno(t, call(k, 'take', 1)); run(t, 'COMMIT'); return e[0] in (30016, 30003) and rows(k, w) == [], (e, rows(k, w))
def R1(server, k, db, w):
    """Reset in a cluster of 3 nodes (the variables alone)."""
    run(w, 'SET GLOBAL auto_increment_increment = 3')
    try:
        k.make(w, 9, 1000); a, b, c = connect(server, db), connect(server, db), connect(server, db)
        run(a, 'START TRANSACTION'); run(a, 'SELECT * FROM %s WHERE %s AND %s = %d FOR UPDATE' % (k.table, k.where, k.slot, 3 if k.slot != 'slot' else k.first))
        B = Later(b, call(k, 'reset', 0, *(['FALSE'] if k.slot != 'slot' else []))); C = Later(c, call(k, 'take', 1)); run(a, 'COMMIT'); rb, rc = B.end(), C.end()
        return rb[0] == 0 and total(k, w) == 0, (rb, rc, total(k, w))
    finally: run(w, 'SET GLOBAL auto_increment_increment = 1')
def R2(server, k, db, w):
    k.make(w, 10, 10000); put(k, w, 3, 1); a, b, c = conn(server, k, db, 3, N(k)), connect(server, db, isolation='READ COMMITTED'), conn(server, k, db, 7, N(k))
    run(a, 'START TRANSACTION'); run(a, call(k, 'increment')); B = Later(b, call(k, 'reset', 0, *(['FALSE'] if k.slot != 'slot' else []))); C = Later(c, call(k, 'take', 10))
    run(a, 'COMMIT'); rb, rc = B.end(), C.end(); return rb[0] == 0 and total(k, w) == 0, (rb, rc, total(k, w))
def R8(server, k, db, w):
    k.make(w, 10, 0); out = []
    for j in (('[["s", 15e-1]]', '[["s", 2e-1]]') if k.slot != 'slot' else ('[[1, 7, 15e-1]]', '[[1, 7, 2e-1]]', '[[1, 15e-1, 1]]')):
        out.append(errno(w, "CALL %sadd_many('%s')" % (k.prefix, j))[0])
    return set(out) == {30015} and total(k, w) == 0, (out, total(k, w))
def R10(server, k, db, w):
    """Reset, compaction and delete of a record without slot 0 beside a locked row of the record before it."""
    if k.slot != 'slot': return None
    out = []
    for level in ('READ COMMITTED', 'REPEATABLE READ'):
        for what in ('reset(1, 7, 3)', 'compact(1, 7)', 'delete(1, 7)'):
            run(w, 'DELETE FROM ' + k.table); run(w, 'INSERT INTO %s VALUES (1, 6, 9, 5), (1, 7, 5, 5), (1, 8, 2, 5)' % k.table)
            a, b = connect(server, db, isolation=level), connect(server, db, isolation=level)
            run(a, 'START TRANSACTION'); run(a, 'UPDATE %s SET `count` = 6 WHERE record_id = 6 AND slot = 9 AND record_type = 1' % k.table)
            B = Later(b, 'CALL %s%s' % (k.prefix, what)); out.append((what, level, B.waits())); run(a, 'ROLLBACK'); B.end()
    return not any(o[2] for o in out), [o for o in out if o[2]]
def R11(server, k, db, w):
    if k.slot == 'slot': return None
    c = connect(server, db, mode=''); e = errno(c, "CALL %ssetup('s', REPEAT('d', 300), 3, 0)" % k.prefix); return e[0] != 0, e
def F18(server, k, db, w):
    """In a trigger, after a SELECT of the transaction, beside another writer of the slot (1020 on MariaDB 11.8)."""
    k.make(w, 3, 100); run(w, 'CREATE TABLE o (a INT)'); run(w, 'CREATE TABLE z (a INT)'); run(w, 'CREATE TRIGGER g AFTER INSERT ON o FOR EACH ROW BEGIN %s; %s; END' % (call(k, 'increment'), call(k, 'add', -1 if k in (Named, Keyed) else 1)))
    out = []
    for i in range(6):
        a, b = connect(server, db), connect(server, db); run(a, 'START TRANSACTION'); run(a, 'SELECT * FROM z')
        for _ in range(3): run(w, call(k, 'increment')); run(b, call(k, 'increment'))
        run(w, call(k, 'take', 2)); out.append(errno(a, 'INSERT INTO o VALUES (1)')[0]); errno(a, 'COMMIT')
    return set(out) == {0}, out
for server in servers():
    for name in [a for a in sys.argv[1:] if a[:1] in 'BRF'] or ('B1', 'B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B7own', 'R1', 'R2', 'R8', 'R10', 'R11', 'F18'):
        line = []
        for k in (OldNamed, OldKeyed, Named, Keyed):
            db, w = fresh(server, k.file)
            try: r = globals()[name](server, k, db, w)
            except Exception as e: r = (False, repr(e)[:160])
            if r: line.append('%s %s' % (('old ' if k in (OldNamed, OldKeyed) else 'NEW ') + k.name, 'green' if r[0] else 'red %s' % (r[1],)))
            errno(w, 'DROP DATABASE ' + db)
        print(server, name, '|', ' | '.join(line), flush=True)
