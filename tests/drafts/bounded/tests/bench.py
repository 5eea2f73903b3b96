"""Rates of calls with 64 connections, each in a loop in the server (no client between the calls; a commit each): take beside add, and the
rejection of an empty stock beside one row's UPDATE that changes nothing. Three rounds of 2 s, medians. bench.py [servers] [named|keyed]"""
from lib import *
import statistics
CONNECTIONS, SECONDS, ROUNDS = arg('c', 64), arg('t', 2), arg('r', 3)
def rate(server, db, body):
    c = connect(server, db); run(c, 'DROP PROCEDURE IF EXISTS bench_loop')
    run(c, 'CREATE PROCEDURE bench_loop(p_end DOUBLE) BEGIN DECLARE n INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR 30016 SET n = n; '
        'WHILE UNIX_TIMESTAMP(SYSDATE(3)) < p_end DO %s; SET n = n + 1; END WHILE; INSERT INTO bench_done VALUES (n); END' % body)
    run(c, 'DELETE FROM bench_done'); end = time.time() + SECONDS + 0.5; cs = [connect(server, db) for _ in range(CONNECTIONS)]; start = time.time()
    ts = [threading.Thread(target=run, args=(x, 'CALL bench_loop(%f)' % (start + SECONDS))) for x in cs]
    [t.start() for t in ts]; [t.join() for t in ts]; [x.close() for x in cs]
    n = int(value(c, 'SELECT SUM(n) FROM bench_done')); c.close(); return n / (time.time() - start)
class Proto(Named):
    name, file = 'prototype', '../shared/prototypes/bounded.sql'
for server in servers():
    for k in ([Proto] if 'proto' in sys.argv else kinds()):
        db, c = fresh(server, k.file); k.make(c, 100, 0); run(c, 'CREATE TABLE bench_done (n BIGINT)')
        run(c, 'CREATE TABLE one (id INT PRIMARY KEY, v BIGINT NOT NULL) ENGINE = InnoDB'); run(c, 'INSERT INTO one VALUES (1, 0)'); out = {}
        for round in range(ROUNDS):
            run(c, call(k, 'reset', 0, *(['FALSE'] if k is not Keyed else [])))
            if k is Keyed: run(c, call(k, 'compact'))
            for what, body in (('reject', call(k, 'take', 1)), ('one row, nothing', 'UPDATE one SET v = v - 1 WHERE id = 1 AND v >= 1')):
                out.setdefault(what, []).append(rate(server, db, body))
            run(c, call(k, 'reset', 10**9, *(['FALSE'] if k is not Keyed else [])))
            for what, body in (('add', call(k, 'add', 1)), ('take', call(k, 'take', 1))):
                out.setdefault(what, []).append(rate(server, db, body))
        m = {w: statistics.median(r) for w, r in out.items()}
        print('%s %s: %s | take / add %.2f, reject / nothing %.2f' % (server, k.name, {w: int(x) for w, x in m.items()}, m['take'] / m['add'], m['reject'] / m['one row, nothing']), flush=True)
        drop(c, db)
