"""B6 under load: 12 connections take 1 to 90 pieces of 2,000 and put them back, so that at least 900 are there at any time: "not enough" is
never right. Autocommit, and transactions (a take in one, the return in the next) at both levels. false.py [servers] [named|keyed] [old]"""
import lib
from lib import *
import collections, bugs_kinds
lib.TEN = True
SECONDS, N = arg('t', 5), arg('c', 12)
def load(server, k, mode):
    db, watch = fresh(server, k.file); k.make(watch, 10, 2000); end = time.time() + SECONDS; out = collections.Counter()
    def worker(i):
        r = random.Random(i); c = connect(server, db, isolation=mode if mode != 'autocommit' else None); k_ = c.cursor(); have = 0
        while time.time() < end or have:
            a = r.choice([1, 30, 1080 // N]) if not have else have
            what = 'take' if not have else 'add'
            try:
                if mode != 'autocommit': k_.execute('START TRANSACTION')
                k_.execute(call(k, what, a))
                if mode != 'autocommit':
                    if r.random() < 0.5: k_.execute(call(k, 'increment')); k_.execute(call(k, 'take', 1))
                    k_.execute('COMMIT')
                have = a if what == 'take' else 0; out[what] += 1
            except pymysql.err.MySQLError as e:
                out[e.args[0]] += 1; k_.execute('ROLLBACK')
                if e.args[0] not in (1213, 30016, 1020): out[e.args[1]] += 1; return
        c.close()
    ts = [threading.Thread(target=worker, args=(i,)) for i in range(N)]; [t.start() for t in ts]; [t.join() for t in ts]
    ok = total(k, watch) == 2000 and not out[30016] and set(out) <= {'take', 'add', 1213, 30016}
    print(server, k.file.split('/')[-2 if 'setup' in k.file else -1], mode, dict(out), 'total', total(k, watch), 'ok' if ok else 'FAILED', flush=True); drop(watch, db)
for server in servers():
    for k in bugs_kinds.old() if 'old' in sys.argv else kinds():
        for mode in ('autocommit', 'REPEATABLE READ', 'READ COMMITTED'): load(server, k, mode)
