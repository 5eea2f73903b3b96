# Server CPU of a call: on a warm connection in a loop, and of connect, call and quit. usage: cpu.py SERVER [rounds]
from lib import *
import sys, os
server = sys.argv[1]; rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3; only = sys.argv[3] if len(sys.argv) > 3 else ''; N = 600 if rounds > 1 else 300
pid = int(open(f'/dev/shm/unbounded-{server}/pid').read())
def cpu(): v = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split(); return (int(v[11]) + int(v[12])) * 1e6 / os.sysconf('SC_CLK_TCK')
dbs = {}
for which, root in (('old', None), ('new', NEW)):
    for p in [x for x in ('counters', 'counters-fixed', 'slotted_counters') if only in ('', x)]:
        db = f'cpu_{which}_{p.replace("-", "_")}'; c = fresh(server, db, f'{OLD}/{p}/setup.sql' if which == 'old' else f'{NEW}/{p}.sql')
        if 'slotted' not in p: q(c, f"CALL counter_setup('a', NULL, {'20' if 'fixed' in p else '100'}, 0)")
        dbs[which, p] = db
        if which == 'new':   # the body alone with the expression for one server
            sub = lambda t: t.replace('CONNECTION_ID() * @@GLOBAL.auto_increment_increment + @@GLOBAL.auto_increment_offset - 1,\n           20 - MOD(20, @@GLOBAL.auto_increment_increment)', 'CONNECTION_ID(), 20').replace('CONNECTION_ID() * @@GLOBAL.auto_increment_increment + @@GLOBAL.auto_increment_offset - 1,\n           v_slots - MOD(v_slots, @@GLOBAL.auto_increment_increment)', 'CONNECTION_ID(), v_slots').replace('CONNECTION_ID() * @@GLOBAL.auto_increment_increment + @@GLOBAL.auto_increment_offset - 1, 521 - MOD(521, LEAST(521, @@GLOBAL.auto_increment_increment))', 'CONNECTION_ID(), 521')
            db = f'cpu_nodes1_{p.replace("-", "_")}'; c = fresh(server, db, f'{NEW}/{p}.sql', sub=sub); dbs['nodes1', p] = db
            if 'slotted' not in p: q(c, f"CALL counter_setup('a', NULL, {'20' if 'fixed' in p else '100'}, 0)")
CASES = [('plain UPDATE', 'new', 'counters', "UPDATE counters SET counter = counter + 1 WHERE counter_name = 'a' AND counter_id = 1 + MOD(CONNECTION_ID(), 100)")]
for w in ('old', 'new', 'nodes1'):
    for p in ('counters', 'counters-fixed'):
        CASES += [(f'{w} {p} increment', w, p, "CALL counter_increment('a')"), (f'{w} {p} add', w, p, "CALL counter_add('a', 3)")]
    CASES += [(f'{w} slotted increment', w, 'slotted_counters', 'CALL slotted_counter_increment(1, 1)'), (f'{w} slotted add', w, 'slotted_counters', 'CALL slotted_counter_add(1, 1, 2)')]
CASES = [x for x in CASES if (x[1], x[2]) in dbs]
if only == 'slotted_counters': CASES.insert(0, ('plain UPDATE', 'new', only, 'UPDATE slotted_counters SET `count` = `count` + 1 WHERE record_type = 1 AND record_id = 1 AND slot = MOD(CONNECTION_ID(), 521)'))
if only == 'counters-fixed': CASES.insert(0, ('plain UPDATE', 'new', only, "UPDATE counters SET counter = counter + 1 WHERE counter_name = 'a' AND counter_id = 1 + MOD(CONNECTION_ID(), 20)"))
if only in ('', 'counters'): CASES += [(f'{w} get', w, 'counters', "SELECT counter_get('a')") for w in ('old', 'new')]
warm, cold = {}, {}
for r in range(rounds):
    for name, w, p, sql in CASES:
        c = conn(server, dbs[w, p]); k = c.cursor()
        for _ in range(20): k.execute(sql); k.fetchall()
        a = cpu()
        for _ in range(N): k.execute(sql)
        warm.setdefault(name, []).append((cpu() - a) / N); c.close()
        a = cpu()
        for _ in range(N // 5):
            c = conn(server, dbs[w, p]); k = c.cursor(); k.execute(sql); c.close()
        cold.setdefault(name, []).append((cpu() - a) / (N // 5))
import statistics as S
base = S.median(cold['plain UPDATE'])
for name, *_ in CASES: print(f'{server:14} {name:32} warm {S.median(warm[name]):6.0f} us   connect, call, quit {S.median(cold[name]):6.0f} us  {S.median(cold[name]) / base:.2f}')
