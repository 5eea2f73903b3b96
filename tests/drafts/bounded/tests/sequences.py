"""150 random sequences of 30 calls from three connections with different slots agree with a plain number after each call: amounts of
either sign, transactions with COMMIT and ROLLBACK and savepoints, old snapshots, four isolation levels, plain statements, resizes, resets,
compactions. In sequence: while a connection has locks, the others only read. sequences.py [servers] [named|keyed] [n=150]"""
from lib import *
N = int(([a[2:] for a in sys.argv if a.startswith('n=')] or [150])[0])
FROM = int(([a[5:] for a in sys.argv if a.startswith("from=")] or [0])[0])
LEVELS = ['READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'REPEATABLE READ', 'SERIALIZABLE']
SETTINGS = [] ; MORE = {}
if 'found' in sys.argv: MORE = dict(client_flag=pymysql.constants.CLIENT.FOUND_ROWS)   # as Connector/J and mysql2
if 'odd' in sys.argv: SETTINGS = ["SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'", 'SET sql_safe_updates = 1', 'SET sql_select_limit = 1']
if 'off' in sys.argv: SETTINGS = ['SET check_constraint_checks = OFF']   # MariaDB
if 'snapshot' in sys.argv: SETTINGS = ['SET innodb_snapshot_isolation = ON']   # MariaDB 10.11
def one(server, k, db, watch, seed):
    r = random.Random(seed); log = []
    run(watch, 'DELETE FROM ' + k.table)
    slots, number = r.randrange(1, 7), r.choice([0, 3, 40, 400, 5000])
    if k is Keyed and r.random() < 0.5:
        if number: run(watch, call(k, 'add', number))
    else: k.make(watch, slots, number)
    cs = []
    while len(cs) < 3:
        level = r.choice(LEVELS); c = connect(server, db, isolation=level, **MORE)
        for st in SETTINGS: run(c, st)
        cs.append(dict(c=c, level=level, open=False, dirty=False))
    inner = number                                  # the number in the transaction that has changed something
    def check(where):
        got = total(k, watch)
        assert got == number, (server, k.name, seed, where, got, number, log)
        assert least(k, watch) >= 0, (server, k.name, seed, where, 'negative', log)
    for _ in range(30):
        dirty = [x for x in cs if x['dirty']]
        x = dirty[0] if dirty and r.random() < 0.85 else r.choice(cs)
        me = cs.index(x); c = x['c']
        if not x['open'] and r.random() < 0.3:
            run(c, 'START TRANSACTION'); x['open'] = True; x['save'] = None; log.append((me, 'BEGIN ' + x['level']))
            if r.random() < 0.6 and not (dirty and x['level'] == 'SERIALIZABLE'):
                run(c, 'SELECT %sget(%s)' % (k.prefix, k.key)); log.append((me, 'get'))
                if x['level'] == 'SERIALIZABLE': x['dirty'] = True
            continue
        if x['open'] and r.random() < 0.3:
            end = r.choice(['COMMIT', 'ROLLBACK']); run(c, end); log.append((me, end))
            if x['dirty']: number = inner if end == 'COMMIT' else number; inner = number
            x['open'] = x['dirty'] = False; check(end); continue
        if dirty and not x['dirty']: continue        # it would wait
        if x['open'] and r.random() < 0.15:
            if x['save'] is None: run(c, 'SAVEPOINT mine'); x['save'] = inner - number if x['dirty'] else 0
            else:
                run(c, 'ROLLBACK TO SAVEPOINT mine')
                if x['dirty']: inner = number + x['save']
                x['save'] = None; run(c, 'RELEASE SAVEPOINT mine')
            log.append((me, 'savepoint', x['save'])); continue
        now = inner if x['dirty'] else number; new = now; want = 0
        a = r.choice([1, 1, 2, 3, 7, 12, 50, r.randrange(1, 900)])
        what = r.random()
        if what < 0.14: sql = call(k, 'increment'); new = now + 1
        elif what < 0.34: sql = call(k, 'add', a); new = now + a
        elif what < 0.50:
            sql = call(k, 'add', -a)
            if now >= a: new = now - a
            else: want = 30016
        elif what < 0.78:
            sql = call(k, 'take', a)
            if now >= a: new = now - a
            else: want = 30016
        elif what < 0.84:
            json = '[["s", %d], ["s", 2]]' % a if k is Named else '[[1, 7, %d], [1, 7, 2]]' % a
            sql = "CALL %sadd_many('%s')" % (k.prefix, json); new = now + a + 2
        elif what < 0.88: sql = call(k, 'reset', a - 1, *(['FALSE'] if k is Named else [])); new = a - 1
        elif what < 0.94: sql = call(k, 'resize', r.randrange(1, 9)) if k is Named else call(k, 'compact')
        else:                                        # plain statements
            sl = r.randrange(0, 5)
            if r.random() < 0.5:
                sql = '/*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */ UPDATE %s SET `%s` = `%s` - %d WHERE %s AND %s = %d AND `%s` >= %d' % (k.table, k.count, k.count, a, k.where, k.slot, sl, k.count, a)
                n = c.cursor().execute(sql)
                new = now - a * n; assert n <= 1
            else:
                sql = '/*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */ UPDATE %s SET `%s` = `%s` + %d WHERE %s AND %s = %d' % (k.table, k.count, k.count, a, k.where, k.slot, sl)
                n = c.cursor().execute(sql); new = now + a * n; assert n <= 1
            log.append((me, sql, n)); sql = None
        if sql:
            log.append((me, sql))
            before = rows(k, c) if want and not x['open'] else None
            got = errno(c, sql)
            assert got[0] == want, (server, k.name, seed, got, want, now, log)
            if want: assert ('not enough: %d left' % now) in got[1], (got, now, log)
            if before is not None: assert rows(k, c) == before, (server, seed, 'a failing call has changed rows', log)
        if x['open']:
            inner = new; x['dirty'] = True
        else: number = inner = new
        check(sql)
    for x in cs:
        if x['open']:
            run(x['c'], 'COMMIT')
            if x['dirty']: number = inner
        x['c'].close()
    check('end')
for server in servers():
    for k in kinds():
        db, watch = fresh(server, k.file); t = time.time()
        for i in range(FROM, FROM + N): one(server, k, db, watch, i)
        drop(watch, db); print('%s %s: %d sequences of 30 agree (%.0f s)' % (server, k.name, N, time.time() - t), flush=True)
