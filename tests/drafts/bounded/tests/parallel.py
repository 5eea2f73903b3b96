"""16 connections at once for some seconds: takes, additions, increments, add_many, transactions with rollbacks, and resizes or compactions.
Never below 0 in the total or a slot, exact at the end. parallel.py [servers] [named|keyed]"""
from lib import *
import collections
SECONDS, N = arg('t', 6), arg('c', 16)
def load(server, k):
    db, watch = fresh(server, k.file); k.make(watch, 10, 300)
    end = time.time() + SECONDS; moved = [0] * N; done, errors = collections.Counter(), collections.Counter(); below = []; stop = threading.Event()
    def worker(i):
        r = random.Random(i); c = connect(server, db, isolation=r.choice(['REPEATABLE READ', 'READ COMMITTED', 'READ UNCOMMITTED']))
        run(c, 'SET innodb_lock_wait_timeout = 20')
        while time.time() < end:
            transaction = r.random() < 0.3; change = 0
            try:
                if transaction: run(c, 'START TRANSACTION')
                for _ in range(r.randrange(1, 4) if transaction else 1):
                    a = r.choice([1, 1, 2, 5, 20, 60]); what = r.random()
                    try:
                        if i < max(1, N // 8) and not transaction and what < 0.5:
                            run(c, call(k, 'resize', r.choice([1, 3, 10, 30])) if k is Named else call(k, 'compact')); done['resize'] += 1
                        elif what < 0.5: run(c, call(k, 'take', a)); change -= a; done['take'] += 1
                        elif what < 0.75: run(c, call(k, 'add', a)); change += a; done['add'] += 1
                        elif what < 0.85: run(c, call(k, 'increment')); change += 1; done['increment'] += 1
                        elif what < 0.92: run(c, call(k, 'add', -a)); change -= a; done['add -'] += 1
                        else:
                            run(c, "CALL %sadd_many('%s')" % (k.prefix, '[["s", %d]]' % a if k is Named else '[[1, 7, %d]]' % a)); change += a; done['add_many'] += 1
                    except pymysql.err.MySQLError as e:
                        if e.args[0] != 30016: raise
                        done['not enough'] += 1
                if transaction and r.random() < 0.3: run(c, 'ROLLBACK'); change = 0
                elif transaction: run(c, 'COMMIT')
                moved[i] += change
            except pymysql.err.MySQLError as e:
                errors[e.args[0]] += 1
                run(c, 'ROLLBACK')
                if e.args[0] not in (1213, 1205): below.append(e.args); return
        c.close()
    def watcher():
        while not stop.is_set():
            t, l = total(k, watch), least(k, watch)
            if l < 0 or t < 0: below.append((t, l))
            time.sleep(0.01)
    w = threading.Thread(target=watcher); w.start()
    ts = [threading.Thread(target=worker, args=(i,)) for i in range(N)]; [x.start() for x in ts]; [x.join() for x in ts]; stop.set(); w.join()
    ok = total(k, watch) == 300 + sum(moved) and not below
    print('%s %s: %s, errors %s, total %d = %d  %s %s' % (server, k.name, dict(done), dict(errors), total(k, watch), 300 + sum(moved), below[:3] or '', 'ok' if ok else 'FAILED'), flush=True)
    drop(watch, db)
for server in servers():
    for k in kinds(): load(server, k)
