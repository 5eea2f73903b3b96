# The notes R1, R2, R3, R8, R9, R10, R11, F18 as reproductions. usage: notes.py SERVER old|new   Prints a line for each: red or green.
from lib import *
import sys
server, which = sys.argv[1], sys.argv[2]
only = sys.argv[3:]
maria = server.startswith('maria')
path = lambda p: f'{OLD}/{p}/setup.sql' if which == 'old' else f'{NEW}/{p}.sql'
DB = 'notes_' + which
def report(name, green, what): print(f'{"green" if green else "RED  "} {which} {server} {name}: {what}', flush=True)
def want(name): return not only or name in only
c = fresh(server, DB, [path('counters'), path('slotted_counters')])
def levels(x, iso): q(x, f'SET SESSION TRANSACTION ISOLATION LEVEL {iso}'); q(x, 'SET SESSION innodb_lock_wait_timeout = 5')

# R1: records, a reset and a delete in steps beside a routine that moves counts, or adds. Old: take moves counts into slots that are reset already.
# Nothing in the new packages moves counts upwards: a compaction moves them to slot 0, which is the last, and an add counts after the reset.
if want('R1'):
    q(c, 'SET GLOBAL auto_increment_increment = 3'); q(c, 'SET GLOBAL auto_increment_offset = 1')
    for action, left in (('reset(1, 1, 0)', 0), ('delete(1, 1)', 0)):
        for proc in (['take(1, 1, 1)', 'compact(1, 1)', 'add(1, 1, 7)'] if which == 'old' else ['compact(1, 1)', 'add(1, 1, 7)']):
            q(c, 'DELETE FROM slotted_counters'); q(c, 'INSERT INTO slotted_counters VALUES (1, 1, 0, 100000), (1, 1, 1, 5), (1, 1, 520, 6)')
            A, B, C = (conn(server, DB) for _ in range(3))
            q(A, 'BEGIN'); q(A, 'UPDATE slotted_counters SET count = count + 1 WHERE record_type = 1 AND record_id = 1 AND slot = 1')
            w = Bg(B, 'CALL slotted_counter_' + action); assert w.waits()
            x = Bg(C, 'CALL slotted_counter_' + proc); x.waits()
            q(A, 'COMMIT'); r, y = w.end(), x.end()
            total = int(one(c, 'SELECT slotted_counter_get(1, 1)'))
            green = r[0] == 0 and (total in (0, 7) if 'add' in proc else total in (0, -1))
            report('R1', green, f'{action} in steps beside {proc}: {r[0]}, {y[0]}, total {total}')
    q(c, 'SET GLOBAL auto_increment_increment = 1'); q(c, 'SET GLOBAL auto_increment_offset = 1')

# R2: records, a reset at READ COMMITTED beside routines that move counts. Old: take. New: compaction is what moves counts.
if want('R2'):
    for proc in (['take', 'compact'] if which == 'old' else ['compact']):
        q(c, 'DELETE FROM slotted_counters'); q(c, 'INSERT INTO slotted_counters VALUES (1, 1, 0, 10000), (1, 1, 3, 1)')
        A, B, C = (conn(server, DB) for _ in range(3)); levels(B, 'READ COMMITTED')
        q(A, 'BEGIN'); q(A, 'UPDATE slotted_counters SET count = count + 1 WHERE record_id = 1 AND record_type = 1 AND slot = 3')
        w = Bg(B, 'CALL slotted_counter_reset(1, 1, 0)'); assert w.waits()
        x = Bg(C, 'CALL slotted_counter_take(1, 1, 10)' if proc == 'take' else 'CALL slotted_counter_compact(1, 1)'); x.waits()
        q(A, 'COMMIT'); r = w.end(); s = x.end()
        total = one(c, 'SELECT slotted_counter_get(1, 1)')
        report('R2 ' + proc, total in (0, -10), f'reset at READ COMMITTED beside {proc}: reset {r[0]}, {proc} {s[0]}, total {total}')

# R3: a reset of a zero counter to 0 beside increments: 1317 without KILL.
if want('R3'):
    q(c, 'DELETE FROM counters'); q(c, "CALL counter_setup('z', NULL, 1, 0)")
    # an increment commits between the two statements of the reset: the second one waits for its lock
    A, B = conn(server, DB), conn(server, DB); bad = {}
    stop = []
    def load():
        while not stop: q(A, "CALL counter_increment('z')"); q(A, "CALL counter_add('z', -1)"); time.sleep(.0005)
    t = threading.Thread(target=load); t.start()
    end = time.time() + 6; k = 0
    while time.time() < end: e = ex(B, "CALL counter_reset('z', 0, FALSE)"); bad[e] = bad.get(e, 0) + 1; k += 1
    stop.append(1); t.join()
    report('R3', 1317 not in bad, f'{k} resets to 0 beside increments and decrements: results {bad}')

# R8: numbers with an exponent; the error of an overflow is the documented one
if want('R8'):
    res = [ex(c, f"CALL slotted_counter_add_many('{a}')") for a in ('[[1, 1, 15e-1]]', '[[1, 1, 2e-1]]', '[[1, 15e-1, 1]]', '[[15e-1, 1, 1]]')]
    q(c, 'DELETE FROM slotted_counters'); q(c, 'CALL slotted_counter_add(1, 1, 9223372036854775807)')
    over = ex(c, "CALL slotted_counter_add_many('[[1, 1, 1]]')") if one(c, 'SELECT MAX(slot) FROM slotted_counters') is not None else None
    manual = one(c, f"SELECT routine_comment FROM information_schema.routines WHERE routine_schema = '{DB}' AND routine_name = 'slotted_counter_add_many'")
    line = [l for l in manual.split('\n') if 'count of a slot' in l][0]
    report('R8', res == [30015] * 4 and str(over) in line, f'exponents {res}, overflow of a slot {over}, manual: {line.strip()}')

# R9: a rolled back first increment and two that wait. Cannot be avoided with an upsert: the manual says it.
if want('R9'):
    dead = 0
    for i in range(3):
        A, B, C = (conn(server, DB) for _ in range(3)); q(c, 'DELETE FROM slotted_counters')
        ins = 'INSERT INTO slotted_counters VALUES (1, 1, 5, 1) ON DUPLICATE KEY UPDATE count = count + 1'
        q(A, 'BEGIN'); q(A, ins); b, d = Bg(B, ins), Bg(C, ins); b.waits(.2); d.waits(.2); q(A, 'ROLLBACK'); dead += (b.end()[0] == 1213) + (d.end()[0] == 1213)
    manual = one(c, f"SELECT routine_comment FROM information_schema.routines WHERE routine_schema = '{DB}' AND routine_name = 'slotted_counter_increment'")
    report('R9', '1213' in manual, f'{dead} deadlocks in 3 rounds (the statement itself); the manual names it: {"1213" in manual}')

# R10: reset and delete of a record without slot 0 wait for the preceding record
if want('R10'):
    for iso in ('REPEATABLE READ', 'READ COMMITTED'):
        res = {}
        for call in ('CALL slotted_counter_reset(2, 1, 7)', 'CALL slotted_counter_delete(2, 1)', 'CALL slotted_counter_compact(2, 1)', 'CALL slotted_counter_reset(2, 5, 7)', 'CALL slotted_counter_delete(2, 5)'):
            q(c, 'DELETE FROM slotted_counters'); q(c, 'INSERT INTO slotted_counters VALUES (1, 1, 0, 1), (1, 1, 4, 1), (2, 1, 3, 5), (2, 1, 4, 6), (3, 1, 0, 1), (3, 1, 2, 1)')
            N, B = conn(server, DB), conn(server, DB); levels(N, 'READ COMMITTED'); levels(B, iso); q(B, 'SET SESSION innodb_lock_wait_timeout = 1')
            q(N, 'BEGIN'); q(N, 'UPDATE slotted_counters SET count = count + 1 WHERE record_type IN (1, 3)')
            res[call[20:]] = ex(B, call); q(N, 'ROLLBACK'); N.close(); B.close()
        report('R10', not any(res.values()), f'{iso}: {res}')

# R11: affected rows, truncated descriptions
if want('R11'):
    q(c, 'DELETE FROM counters'); q(c, "CALL counter_setup('n', NULL, 5, 0)"); k = c.cursor()
    if which == 'old': ex(c, "CALL counter_take('n', 1)"); q(c, "INSERT IGNORE INTO counters VALUES ('n', 0, NULL, NOW(), 0)")
    a = k.execute("CALL counter_add('n', -3)"); b = k.execute("CALL counter_reset('n', -5, FALSE)")
    q(c, "SET SESSION sql_mode = ''"); e = ex(c, "CALL counter_setup('d', REPEAT('x', 300), 5, 0)"); q(c, 'SET SESSION sql_mode = DEFAULT')
    report('R11', a >= 1 and b >= 1 and e != 0, f'rows of add(-3) {a}, of reset(-5) {b}; a description of 300 characters without strict mode: {e}')

# F18: triggers on MariaDB: a transaction that begins with a SELECT, and then increments in a trigger
if want('F18'):
    q(c, 'DELETE FROM counters'); q(c, "CALL counter_setup('t', NULL, 5, 0)")
    q(c, 'CREATE TABLE events (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB')
    q(c, "CREATE TRIGGER counts AFTER INSERT ON events FOR EACH ROW CALL counter_increment('t')")
    if maria: q(c, 'SET GLOBAL innodb_snapshot_isolation = ON')
    A = conn(server, DB); res = {}
    if maria: q(A, 'SET SESSION innodb_snapshot_isolation = ON')
    for i in range(10):
        q(A, 'BEGIN'); q(A, "SELECT COUNT(*) FROM counters"); q(c, "UPDATE counters SET counter = counter + 1 WHERE counter_name = 't'")
        e = ex(A, 'INSERT INTO events VALUES ()'); res[e] = res.get(e, 0) + 1; q(A, 'ROLLBACK')
        q(A, 'BEGIN'); q(A, "SELECT COUNT(*) FROM counters"); q(c, "UPDATE counters SET counter = counter + 1 WHERE counter_name = 't'")
        q(A, 'INSERT INTO events SELECT NULL FROM (SELECT 1) x WHERE FALSE'); q(A, 'ROLLBACK')
    if maria and '10.11' in server: q(c, 'SET GLOBAL innodb_snapshot_isolation = OFF')
    report('F18', list(res) == [0], f'increments in a trigger after a SELECT: {res}')
