# Concurrent calls with resizes (compactions), resets and deletes of another counter: the sum of what was acknowledged is the total.
# A reset runs in a transaction that has locked all slots, so that it knows what it removes: it sets the total to that plus 3.
# usage: load.py SERVER PACKAGE SECONDS [nodes]
from lib import *
import sys, random
server, pkg, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]); nodes = int(sys.argv[4]) if len(sys.argv) > 4 else 1; writers = int(sys.argv[5]) if len(sys.argv) > 5 else 8
old = pkg.startswith('old:'); pkg = pkg.replace('old:', ''); rec, fixed = pkg == 'slotted_counters', pkg == 'counters-fixed'
db = 'load_' + pkg.replace('-', '_'); admin = fresh(server, db, f'{OLD}/{pkg}/setup.sql' if old else f'{NEW}/{pkg}.sql')
q(admin, f'SET GLOBAL auto_increment_increment = {nodes}')
KEYS = ['1, 7', '1, 8'] if rec else ["'a'", "'b'"]; P = 'slotted_counter_' if rec else 'counter_'
if not rec: [q(admin, f"CALL counter_setup({k}, NULL, {'NULL' if fixed else 20}, 0)") for k in KEYS]
stop, sums, results, lock = [], {k: 0 for k in KEYS}, {}, threading.Lock()
def note(who, e):
    with lock: results[(who, e)] = results.get((who, e), 0) + 1
def writer(n):
    R = random.Random(n); c = conn(server, db); j = [k.replace("'", '"') for k in KEYS]
    q(c, 'SET SESSION TRANSACTION ISOLATION LEVEL ' + ('REPEATABLE READ' if n % 2 else 'READ COMMITTED')); q(c, 'SET SESSION innodb_lock_wait_timeout = 5')
    while not stop:
        mine = {k: 0 for k in KEYS}; tx = R.random() < .4; bad = 0
        if tx: q(c, 'BEGIN')
        order = [KEYS[0]] * R.randint(1, 3) if tx else [R.choice(KEYS)]
        for k in order:
            v = R.randint(-5, 9); kind = R.random()
            if kind < .4: e, what = ex(c, f'CALL {P}increment({k})'), {k: 1}
            elif kind < .8 or tx: e, what = ex(c, f'CALL {P}add({k}, {v})'), {k: v}
            else: e, what = ex(c, f"CALL {P}add_many('[[{j[1]}, {v}], [{j[0]}, 2]]')"), {KEYS[0]: 2, KEYS[1]: v}
            if e:
                bad = e; break
            for x, y in what.items(): mine[x] += y
        if tx:
            if bad or R.random() < .2: q(c, 'ROLLBACK'); mine = {}
            else: bad = ex(c, 'COMMIT')
        note('writer', bad)
        if not bad:
            with lock:
                for x, y in mine.items(): sums[x] += y
def resizer(n):
    R = random.Random(100 + n); c = conn(server, db)
    while not stop:
        k = R.choice(KEYS)
        note('resize', ex(c, f'CALL {P}compact({k})' if rec else f'CALL {P}resize({k}, {"NULL" if fixed else R.choice([nodes, 2 * nodes + 1, 20, 40])})')); time.sleep(.02 if not rec else .1)
def resetter():
    c = conn(server, db); R = random.Random(5)
    while not stop:
        k = KEYS[0]; q(c, 'BEGIN')
        where = f'record_type = 1 AND record_id = {k[3:]}' if rec else f'counter_name = {k}'
        col, s = ('`count`', 'slot') if rec else ('counter', 'counter_id')
        try:
            total = int(one(c, f'SELECT COALESCE(SUM(n), 0) FROM (SELECT {col} AS n FROM {pkg if rec else "counters"} WHERE {where} ORDER BY {s} {"ASC" if rec else "DESC"} LIMIT 20001 FOR UPDATE) x'))
            e = ex(c, f'CALL {P}reset({k}, {total + 3}' + ('' if rec else ', FALSE') + ')')
            if e == 0: e = ex(c, 'COMMIT')
            else: q(c, 'ROLLBACK')
        except Exception as x: e = x.args[0]; q(c, 'ROLLBACK')
        note('reset', e)
        if not e:
            with lock: sums[k] += 3
        time.sleep(.1)
ts = [threading.Thread(target=writer, args=(n,)) for n in range(writers)] + [threading.Thread(target=resizer, args=(n,)) for n in range(1 + writers // 8)] + [threading.Thread(target=resetter)]
[t.start() for t in ts]; time.sleep(seconds); stop.append(1); [t.join() for t in ts]
got = {k: int(one(admin, f'SELECT {P}get({k})')) for k in KEYS}
q(admin, 'SET GLOBAL auto_increment_increment = 1')
unexpected = {k: v for k, v in results.items() if k[1] not in (0, 1213, 1205, 1020)}
print(('green' if got == sums and not unexpected else 'RED  '), server, sys.argv[2], 'nodes', nodes, 'sums', sums, 'totals', got, results)
