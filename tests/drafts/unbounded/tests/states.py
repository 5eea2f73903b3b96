# Each set of slots that an interrupted resize can leave is resized exactly; old snapshots; a counter that is younger than the snapshot. usage: states.py SERVER [part]
from lib import *
import sys
server = sys.argv[1]; DB = 'states'; c = fresh(server, DB, f'{NEW}/counters.sql'); n = 0
retired = [[], [(-6, 600)], [(-3, 300), (-2, 0)], [(-10000, -5), (-9999, 0)]]
start = time.time()
for subset in range(32):
    slots = [s for s in range(1, 7) if s == 1 or subset & (1 << (s - 2))]
    for wanted in range(1, 8):
        for r in retired:
            if (subset + wanted) % 2 and time.time() - start > 6: continue
            rows = [(s, s) for s in slots] + r; q(c, 'DELETE FROM counters')
            q(c, 'INSERT INTO counters VALUES ' + ', '.join(f"('a', {s}, NULL, '2026-01-01', {x})" for s, x in rows))
            e = ex(c, f"CALL counter_resize('a', {wanted})"); got = q(c, 'SELECT counter_id FROM counters ORDER BY 1'), one(c, 'SELECT SUM(counter) FROM counters')
            assert e == 0 and [x[0] for x in got[0]] == list(range(1, wanted + 1)) and got[1] == sum(x for _, x in rows), (rows, wanted, e, got); n += 1
q(c, 'DELETE FROM counters WHERE counter_id = 1'); before = q(c, 'SELECT * FROM counters'); assert ex(c, "CALL counter_resize('a', 3)") == 30003 and q(c, 'SELECT * FROM counters') == before
# old snapshots
def old():
    o = conn(server, DB); q(o, 'SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ'); q(o, 'START TRANSACTION WITH CONSISTENT SNAPSHOT'); q(o, 'SELECT COUNT(*) FROM counters'); return o
for to in (1, 2, 5, 8, 12):
    q(c, 'DELETE FROM counters'); q(c, "CALL counter_setup('a', NULL, 8, 5)"); o = old()
    q(c, "CALL counter_resize('a', 2)"); q(c, "CALL counter_add('a', 2)"); e = ex(o, f"CALL counter_resize('a', {to})"); f = ex(o, "CALL counter_reset('a', 70, TRUE)") if to == 5 else 0; q(o, 'COMMIT')
    assert (e, f) == (0, 0) and q(c, 'SELECT slots, total, resize_incomplete FROM counter_totals') == ((to, 70 if to == 5 else 7, 0),), (to, e, f, q(c, 'SELECT * FROM counters'))
    q(c, 'DELETE FROM counters'); q(c, "CALL counter_setup('a', NULL, 3, 5)"); o = old(); q(c, "CALL counter_resize('a', 9)"); q(c, "CALL counter_add('a', 2)")
    e = ex(o, "CALL counter_reset('a', 6, FALSE)"); g = ex(o, f"CALL counter_resize('a', {to})"); q(o, 'COMMIT')
    assert (e, g) == (0, 0) and q(c, 'SELECT slots, total, resize_incomplete FROM counter_totals') == ((to, 6, 0),), (to, e, g, q(c, 'SELECT * FROM counters'))
    o = old(); q(c, "CALL counter_setup('y', NULL, NULL, NULL)"); r = [ex(o, x) for x in ("CALL counter_increment('y')", "CALL counter_add('y', 4)", "CALL counter_add_many('[[\"y\", 5]]')", "CALL counter_reset('y', 20, FALSE)")]; q(o, 'COMMIT')
    assert r == [0, 0, 0, 0] and one(c, "SELECT counter_get('y')") == 20, r
    o = old(); q(c, "CALL counter_delete('y')"); r = [ex(o, x) for x in ("CALL counter_increment('y')", "CALL counter_add_many('[[\"y\", 5]]')", "CALL counter_reset('y', 20, FALSE)", "CALL counter_delete('y')", "CALL counter_resize('y', 3)")]; q(o, 'ROLLBACK')
    assert r == [30003] * 5, r
print('green', server, n, 'states,', '%.1f s' % (time.time() - start))
