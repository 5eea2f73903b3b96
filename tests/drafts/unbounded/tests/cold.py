# Server CPU of connect, one call and quit: plain UPDATE, old and new, interleaved. usage: cold.py SERVER PACKAGE [connects]   (databases of cpu.py)
from lib import *
import sys, os, statistics as S
server, p = sys.argv[1], sys.argv[2]; N = int(sys.argv[3]) if len(sys.argv) > 3 else 100; rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
pid = int(open(f'/dev/shm/unbounded-{server}/pid').read())
def cpu(): v = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split(); return (int(v[11]) + int(v[12])) * 1e6 / os.sysconf('SC_CLK_TCK')
u = p.replace('-', '_'); slots = 20 if 'fixed' in p else 100
for which in ('old', 'new', 'nodes1'):
    try: conn(server, f'cpu_{which}_{u}').close()
    except Exception: print('run cpu.py first'); sys.exit(1)
plain = 'UPDATE slotted_counters SET `count` = `count` + 1 WHERE record_type = 1 AND record_id = 1 AND slot = MOD(CONNECTION_ID(), 521)' if 'slotted' in p else f"UPDATE counters SET counter = counter + 1 WHERE counter_name = 'a' AND counter_id = 1 + MOD(CONNECTION_ID(), {slots})"
inc, add = ('CALL slotted_counter_increment(1, 1)', 'CALL slotted_counter_add(1, 1, 2)') if 'slotted' in p else ("CALL counter_increment('a')", "CALL counter_add('a', 2)")
cases = [('plain', 'new', plain)] + [(f'{w} {k}', w, s) for w in ('old', 'new', 'nodes1') for k, s in (('increment', inc), ('add', add))]
out = {}
for r in range(rounds):
    for name, w, sql in cases:
        a = cpu()
        for _ in range(N):
            c = conn(server, f'cpu_{w}_{u}'); k = c.cursor(); k.execute(sql); c.close()
        out.setdefault(name, []).append((cpu() - a) / N)
b = sum(out['plain']) / rounds
print(f'{server:14} {p:17}', '  '.join(f'{n} {sum(v) / rounds:.0f} ({sum(v) / rounds / b:.2f})' for n, v in out.items()))
