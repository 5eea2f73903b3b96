"""Single situations: locks of a take, rejected callers, autocommit=0, READ UNCOMMITTED, RENAME beside each routine (O1), KILL, nodes. misc.py [servers] [named|keyed]"""
from lib import *
import lib
lib.TEN = True
def maria(s): return s.startswith('maria')
def ok(name, good, *more):
    print('  %-62s %s %s' % (name, 'ok' if good else 'FAILED', more if not good else ''), flush=True)
R = lambda k, v: call(k, 'reset', v, *(['FALSE'] if k is Named else []))
def routines(k):
    n = k is Named
    return [call(k, 'increment'), call(k, 'add', 2), call(k, 'take', 1), call(k, 'take', 40), call(k, 'take', 9999), R(k, 50), call(k, 'resize', 3) if n else call(k, 'compact'),
        call(k, 'resize', 8) if n else 'CALL bounded_slotted_counter_compact_idle(0, 9)', "CALL %sadd_many('%s')" % (k.prefix, '[["s", 1]]' if n else '[[1, 7, 1]]'), call(k, 'delete'),
        "CALL bounded_counter_setup('t', NULL, 3, 1)" if n else 'CALL bounded_slotted_counter_setup(1, 99, 5)', 'SELECT %sget(%s)' % (k.prefix, k.key)]
for server in servers():
    for k in kinds():
        print(server, k.name); db, w = fresh(server, k.file); k.make(w, 5, 50)
        # locks of a take that its slot covers
        for level in ('READ COMMITTED', 'REPEATABLE READ'):
            c = connect(server, db, isolation=level); run(c, call(k, 'add', 5)); run(c, 'START TRANSACTION'); run(c, call(k, 'take', 2))
            if not maria(server):
                l = run(w, "SELECT LOCK_TYPE, LOCK_MODE FROM performance_schema.data_locks WHERE OBJECT_SCHEMA = '%s' ORDER BY 1" % db)
                ok('a take of the own slot locks one record, ' + level, l == [('RECORD', 'X,REC_NOT_GAP'), ('TABLE', 'IX')], l)
            run(c, 'ROLLBACK')
        # rejected callers in transactions do not wait for each other; a rejection outside one waits for nobody on MySQL
        for level in ('READ COMMITTED', 'REPEATABLE READ', 'READ UNCOMMITTED'):
            cs = [connect(server, db, isolation=level) for _ in range(3)]
            for c in cs: run(c, 'SET innodb_lock_wait_timeout = 2'); run(c, 'START TRANSACTION')
            e = [errno(c, call(k, 'take', 5000))[0] for c in cs]; ok('rejected callers in transactions do not wait, ' + level, e == [30016] * 3, e)
            e = errno(w, call(k, 'take', 5000))[0]; ok('nor does one outside a transaction', e == 30016, e)
            for c in cs: run(c, 'ROLLBACK'); c.close()
        # a decision waits for a transaction that can change it
        for level in ('READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ'):
            for mode in (True, False):
                for end, want in (('ROLLBACK', 0), ('COMMIT', 30016)):
                    run(w, R(k, 10)); a, b = connect(server, db), connect(server, db, isolation=level, autocommit=mode)
                    run(a, 'START TRANSACTION'); run(a, call(k, 'take', 6)); B = Later(b, call(k, 'take', 5)); waits = B.waits(); run(a, end); e = B.end()[0]; errno(b, 'COMMIT')
                    ok('the last ones, %s, autocommit %d, %s' % (level, mode, end), e == want and total(k, w) == (5 if want == 0 else 4), e, waits, total(k, w)); a.close(); b.close()
        # an uncommitted addition is not sold, also at READ UNCOMMITTED
        run(w, R(k, 0)); a, b = connect(server, db), connect(server, db, isolation='READ UNCOMMITTED'); run(a, 'START TRANSACTION'); run(a, call(k, 'add', 8)); B = Later(b, call(k, 'take', 8)); run(a, 'ROLLBACK')
        ok('an addition that is rolled back is not sold (READ UNCOMMITTED)', B.end()[0] == 30016 and total(k, w) == 0)
        # nodes: increments and covered takes touch slots of their node only
        run(w, R(k, 0)); run(w, 'DELETE FROM %s WHERE %s > 9' % (k.table, k.slot)) if k is Keyed else run(w, call(k, 'resize', 9))
        for offset in (1, 2, 3):
            run(w, 'SET GLOBAL auto_increment_increment = 3'); run(w, 'SET GLOBAL auto_increment_offset = %d' % offset); before = dict(rows(k, w))
            for _ in range(7): c = connect(server, db); run(c, call(k, 'increment')); run(c, call(k, 'add', 3)); run(c, call(k, 'take', 2)); c.close()
            after = dict(rows(k, w)); changed = {s for s in after if after[s] != before.get(s, 0)}
            ok('node %d writes slots of its own' % offset, changed and all((s - 1) % 3 == offset - 1 for s in changed), changed)
        run(w, 'SET GLOBAL auto_increment_increment = 1'); run(w, 'SET GLOBAL auto_increment_offset = 1')
        # O1: RENAME of a table with a trigger, while a transaction reads the new table, beside each routine
        alive = True; codes = []
        for sql in routines(k):
            run(w, 'SET FOREIGN_KEY_CHECKS = 1'); errno(w, call(k, 'delete')); k.make(w, 5, 50)
            run(w, 'DROP TABLE IF EXISTS _n, _o'); run(w, 'CREATE TABLE _n LIKE ' + k.table); run(w, 'INSERT INTO _n SELECT * FROM ' + k.table)
            for ev, ref in (('INSERT', 'NEW'), ('UPDATE', 'NEW'), ('DELETE', 'OLD')):
                key = ref + '.' + k.slot
                run(w, 'CREATE TRIGGER g%s AFTER %s ON %s FOR EACH ROW %s' % (ev, ev, k.table, ('REPLACE INTO _n SELECT * FROM %s AS q WHERE q.%s = %s' % (k.table, k.slot, key)) if False else 'DELETE FROM _n WHERE %s = %s' % (k.slot, key)))
            a, b, c = connect(server, db), connect(server, db), connect(server, db)
            run(c, 'START TRANSACTION'); run(c, 'SELECT * FROM _n'); B = Later(b, 'RENAME TABLE %s TO _o, _n TO %s' % (k.table, k.table)); A = Later(a, sql); run(c, 'COMMIT')
            codes.append(A.end()[0]); B.end()
            try: run(connect(server, db), 'SELECT 1')
            except Exception as e: alive = False; print('   DEAD after', sql); break
            run(w, 'DROP TABLE IF EXISTS _o')
        ok('the server lives through a RENAME beside each routine', alive and not set(codes) - {0, 1213, 30003, 30016, 30004, 1146}, codes)
        errno(w, 'DROP DATABASE ' + db)
        db, w = fresh(server, k.file); k.make(w, 5, 50)
        # KILL QUERY while a call waits: an error and no change, or done
        out = []
        for sql, n in ((call(k, 'increment'), 1), (call(k, 'add', 3), 3), (R(k, 7), None), (call(k, 'delete'), None), (call(k, 'take', 50), -50)):
            run(w, call(k, 'delete')); k.make(w, 1, 50); a = connect(server, db); b = connect(server, db)
            if k is Keyed: run(b, call(k, 'increment'))
            before = total(k, w); run(a, 'START TRANSACTION'); run(a, 'SELECT * FROM %s FOR UPDATE' % k.table); B = Later(b, sql); run(w, 'KILL QUERY %d' % b.thread_id()); time.sleep(0.2); still = B.waits(); run(a, 'COMMIT')
            e = B.end()[0]; t = total(k, w); good = t == before if e else (n is None or t == before + n); out.append((sql, e, still, before, t, good)); a.close(); b.close()
        ok('KILL QUERY: an error and nothing changed, or done', all(o[5] for o in out), out)
        print('     ', [(o[1], 'went on waiting' if o[2] else '') for o in out])
        drop(w, db)
