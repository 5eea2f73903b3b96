# Random sequences of calls of three to four connections with different slots, in transactions and outside, with savepoints, rollbacks, resets,
# resizes, compactions and deletes, at two isolation levels, one statement at a time, compared with a dict after each step.
# usage: model.py SERVER PACKAGE [sequences] [seed] [seconds] [nodes]     PACKAGE: counters, counters-fixed, slotted_counters, or old:...
from lib import *
import sys, random
server, pkg = sys.argv[1], sys.argv[2]
n = int(sys.argv[3]) if len(sys.argv) > 3 else 40
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
limit = float(sys.argv[5]) if len(sys.argv) > 5 else 100
nodes = int(sys.argv[6]) if len(sys.argv) > 6 else 1
old = pkg.startswith('old:'); pkg = pkg.replace('old:', '')
path = f'{OLD}/{pkg}/setup.sql' if old else f'{NEW}/{pkg}.sql'
rec, fixed = pkg == 'slotted_counters', pkg == 'counters-fixed'
db = 'model_' + pkg.replace('-', '_') + ('_old' if old else '')
admin = fresh(server, db, path)
q(admin, f'SET GLOBAL auto_increment_increment = {nodes}')
KEYS = ['1, 7', '1, 8'] if rec else ["'a'", "'b'"]
P = 'slotted_counter_' if rec else 'counter_'
TABLE = 'slotted_counters' if rec else 'counters'
conns = [conn(server, db) for r in range(3)]   # consecutive IDs: three slots, or shared ones after a resize to 1, 2 or 3
for c in conns: q(c, 'SET SESSION innodb_lock_wait_timeout = 1')
reader = admin; q(reader, 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
start = time.time(); stats = {}
class Model:
    def __init__(s): s.log = []          # [tx, key, op, value, alive, committed]
    def value(s, key, tx=None, all=False):
        """the committed value of a key, with the changes of tx, or of all transactions; None: does not exist"""
        v = 0 if rec else None
        for t, k, op, x, alive, committed in s.log:
            if k != key or not alive or not (committed or all or t == tx): continue
            if op == 'add': v = (v or 0) + x
            elif op == 'set' : v = x
            elif op == 'delete': v = 0 if rec else None
        return v
def fail(why, trace):
    print('FAILED', server, sys.argv[2], 'seed', seed, why); print('\n'.join(trace)); sys.exit(1)
for sequence in range(n):
    if time.time() - start > limit: n = sequence; break
    R = random.Random(seed * 1000 + sequence)
    for i, c in enumerate(conns):
        q(c, 'ROLLBACK'); q(c, 'SET SESSION TRANSACTION ISOLATION LEVEL ' + R.choice(['REPEATABLE READ', 'READ COMMITTED']))
    q(admin, f'DELETE FROM {TABLE}')
    if nodes > 1: q(admin, f'SET GLOBAL auto_increment_offset = {R.randint(1, nodes)}')
    m, tx, points, trace = Model(), [None] * 3, [[] for _ in conns], []
    txn = 0
    if not rec:
        for k in KEYS[:R.choice([1, 2, 2, 2])]: q(admin, f"CALL counter_setup({k}, NULL, {'NULL' if fixed else R.choice([5, 20])}, 3)"); m.log.append([None, k, 'set', 3, True, True])
    for step in range(30):
        i = R.randrange(3); c = conns[i]; key = R.choice(KEYS) if R.random() < .4 else KEYS[0]
        kind = R.choices(['begin', 'commit', 'rollback', 'save', 'to', 'inc', 'add', 'many', 'reset', 'resize', 'delete', 'setup', 'plain'],
                         [5, 9, 4, 2, 2, 9, 10, 5, 4, 9 if not fixed else 3, 2, 6, 2])[0]
        v = R.randint(-9, 9)
        rows, op = None, None
        if kind == 'begin': sql = 'START TRANSACTION'
        elif kind in ('commit', 'rollback'): sql = kind.upper()
        elif kind == 'save': sql = f'SAVEPOINT s{len(points[i])}'
        elif kind == 'to':
            if not points[i]: continue
            sql = f'ROLLBACK TO SAVEPOINT s{len(points[i]) - 1}'
        elif kind == 'inc': sql, op = f'CALL {P}increment({key})', [(key, 'add', 1)]
        elif kind == 'add': sql, op = f'CALL {P}add({key}, {v})', [(key, 'add', v)]
        elif kind == 'many':
            w, j = R.randint(-9, 9), [k.replace("'", '"') for k in KEYS]
            sql, op = f"CALL {P}add_many('[[{j[0]}, {v}], [{j[1]}, {w}], [{j[0]}, 1]]')", [(KEYS[0], 'add', v + 1), (KEYS[1], 'add', w)]
        elif kind == 'reset': sql, op = f'CALL {P}reset({key}, {v}' + ('' if rec else f', {R.choice(["TRUE", "FALSE", "NULL"])}') + ')', [(key, 'set', v)]
        elif kind == 'resize': sql, op = f'CALL {P}compact({key})' if rec else f'CALL {P}resize({key}, {"NULL" if fixed else R.choice([1, 2, 3, 5, 8, 20, 24]) if nodes == 1 else R.choice([3, 4, 7, 9, 20])})', [(key, 'same', 0)]
        elif kind == 'delete': sql, op = f'CALL {P}delete({key})', [(key, 'delete', 0)]
        elif kind == 'setup':
            if rec: continue
            sql, op = f'CALL {P}setup({key}, NULL, {"NULL" if fixed else R.choice([1, 5, 20]) if nodes == 1 else R.choice([3, 5, 20])}, {v})', [(key, 'set', v)]
        elif kind == 'plain':
            where = f'record_type = 1 AND record_id = {key[3:]}' if rec else f'counter_name = {key}'
            sql, op = f'SELECT COUNT(*) FROM {TABLE} WHERE {where}', None
        # In steps, a reset or a delete does not see a slot that an open transaction has inserted: it comes before this transaction.
        if rec and nodes > 1 and kind in ('reset', 'delete') and any(l[1] == key and l[4] and not l[5] and l[0] != tx[i] for l in m.log): continue
        before = {k: m.value(k, all=True) for k in KEYS}
        e = ex(c, sql)
        trace.append(f'{i} (slot {c.thread_id() % 20}): {sql};   -- {e or ""}')
        stats[e] = stats.get(e, 0) + 1
        if kind == 'begin':
            for l in m.log: l[5] |= l[0] == tx[i] and tx[i] is not None
            txn += 1; tx[i] = txn; points[i] = []
        elif kind == 'commit' or kind == 'rollback':
            for l in m.log:
                if tx[i] is not None and l[0] == tx[i]: l[5] = kind == 'commit'; l[4] = l[4] and kind == 'commit'
            tx[i] = None; points[i] = []
        elif kind == 'save':
            if tx[i] is not None: points[i].append(len(m.log))
        elif kind == 'to':
            assert e == 0, (e, trace)
            for l in m.log[points[i][-1]:]:
                if l[0] == tx[i]: l[4] = False
        elif e in (1213, 1020):
            for l in m.log:
                if tx[i] is not None and l[0] == tx[i]: l[4] = False
            tx[i] = None; points[i] = []
        elif e == 1205:
            if nodes > 1 and tx[i] is None and kind in ('reset', 'delete'): break   # in steps: a call that fails leaves a part, as clusters.md says
        elif op:
            exists = all(before[k] is not None for k, o, x in op)
            if e == 0:
                if kind == 'setup' and before[key] is not None: fail('setup of a counter that exists', trace)
                if kind != 'setup' and not exists and not rec: fail('unknown counter was accepted', trace)
                for k, o, x in op:
                    if o != 'same': m.log.append([tx[i], k, o, x, True, tx[i] is None])
            elif e == 30003:
                snapshot = tx[i] is not None and kind in ('resize',) or kind == 'add' and v == 0
                if exists and not snapshot: fail('30003 for a counter that exists', trace)
            elif e == 30004:
                if before[key] is None and tx[i] is None: fail('30004 for a counter that does not exist', trace)
            elif e == 30018 and nodes > 1: pass
            else: fail(f'error {e}', trace)
        for k in KEYS:
            want = m.value(k)
            where = f'record_type = 1 AND record_id = {k[3:]}' if rec else f'counter_name = {k}'
            got = one(reader, f'SELECT SUM({"`count`" if rec else "counter"}) FROM {TABLE} WHERE {where}')
            if rec: got = got or 0
            if got != want: fail(f'{k}: {got}, not {want}', trace)
    for c in conns: q(c, 'ROLLBACK')
q(admin, 'SET GLOBAL auto_increment_increment = 1'); q(admin, 'SET GLOBAL auto_increment_offset = 1')
print('ok', server, sys.argv[2], 'nodes', nodes, n, 'sequences of 30 steps,', '%.0f s' % (time.time() - start), 'results', dict(sorted(stats.items())))
