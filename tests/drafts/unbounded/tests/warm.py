# Server CPU of warm calls, old and new interleaved, and times of maintenance. usage: warm.py SERVER [calls] [rounds]   (databases of cpu.py)
from lib import *
import sys, os
server = sys.argv[1]; N = int(sys.argv[2]) if len(sys.argv) > 2 else 800; rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
pid = int(open(f'/dev/shm/unbounded-{server}/pid').read())
def cpu(): v = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split(); return (int(v[11]) + int(v[12])) * 1e6 / os.sysconf('SC_CLK_TCK')
cases = []
for p, inc, add in (('counters', "CALL counter_increment('a')", "CALL counter_add('a', 2)"), ('counters-fixed', "CALL counter_increment('a')", "CALL counter_add('a', 2)"), ('slotted_counters', 'CALL slotted_counter_increment(1, 1)', 'CALL slotted_counter_add(1, 1, 2)')):
    cases += [(p, k, w, s) for k, s in (('increment', inc), ('add', add)) for w in ('old', 'new', 'nodes1')]
out, cs = {}, {}
for p, k, w, s in cases:
    c = cs[p, w] = cs.get((p, w)) or conn(server, f'cpu_{w}_{p.replace("-", "_")}'); q(c, 'SET autocommit = 1'); ex(c, s)
for r in range(rounds):
    for p, k, w, s in cases:
        cur = cs[p, w].cursor(); a = cpu()
        for _ in range(N): cur.execute(s)
        out.setdefault((p, k), {}).setdefault(w, []).append((cpu() - a) / N)
for (p, k), v in out.items(): print(f'{server:14} {p:17} {k:10}', '  '.join(f'{w} {sum(x) / len(x):.0f}' for w, x in v.items()))
