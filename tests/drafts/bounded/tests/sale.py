"""32 connections sell 10,000 pieces, 1 to 5 in each call: autocommit, transactions at REPEATABLE READ and at READ COMMITTED (a tenth is
rolled back). Ends with nothing left, the exact sum, and counts deadlocks. sale.py [servers] [named|keyed]"""
from lib import *
import collections
CONNECTIONS = arg('c', 32)
PIECES, SLOTS = arg('pieces', 10000), 40
def sale(server, k, mode):
    db, watch = fresh(server, k.file); k.make(watch, SLOTS, PIECES)
    sold, errors, below = [0] * CONNECTIONS, collections.Counter(), [0]; stop = threading.Event(); bad = []
    def seller(i):
        c = connect(server, db, isolation=mode if mode != 'autocommit' else None); r = random.Random(i); k_ = c.cursor()
        while True:
            a = r.randrange(1, 6)
            try:
                if mode == 'autocommit': k_.execute(call(k, 'take', a)); sold[i] += a
                else:
                    k_.execute('START TRANSACTION'); k_.execute(call(k, 'take', a))
                    if r.random() < 0.1: k_.execute('ROLLBACK')
                    else: k_.execute('COMMIT'); sold[i] += a
            except pymysql.err.MySQLError as e:
                if mode != 'autocommit': k_.execute('ROLLBACK')
                if e.args[0] == 30016:
                    if a == 1: break
                else:
                    errors[e.args[0]] += 1
                    if e.args[0] not in (1213, 1020): bad.append(e.args); break
        c.close()
    def watcher():
        while not stop.is_set():
            if total(k, watch) < 0 or least(k, watch) < 0: below[0] += 1
            time.sleep(0.02)
    t = time.time(); w = threading.Thread(target=watcher); w.start()
    ts = [threading.Thread(target=seller, args=(i,)) for i in range(CONNECTIONS)]
    [x.start() for x in ts]; [x.join() for x in ts]; stop.set(); w.join()
    ok = sum(sold) == PIECES and total(k, watch) == 0 and not below[0] and not bad and (mode != 'autocommit' or not errors) and errors[1213] <= 40
    print('%s %s %-16s sold %d left %d, deadlocks %d, other %s, below 0: %d, %.1f s  %s' % (server, k.name, mode, sum(sold), total(k, watch),
        errors[1213], bad or {e: n for e, n in errors.items() if e != 1213} or '', below[0], time.time() - t, 'ok' if ok else 'FAILED'), flush=True)
    drop(watch, db)
for server in servers():
    for k in kinds():
        for mode in ('autocommit', 'REPEATABLE READ', 'READ COMMITTED'): sale(server, k, mode)
