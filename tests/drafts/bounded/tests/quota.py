"""F11: 16 connections set the quota of a new record at once and then take from it: exactly one setup succeeds, nobody gets more than the quota."""
from lib import *
import collections
N = arg('c', 16)
for server in servers():
    for k in kinds():
        db, watch = fresh(server, k.file); cs = [connect(server, db) for _ in range(N)]; got = collections.Counter(); wrong = 0
        for round in range(40):
            gate = threading.Barrier(N); results = [None] * N; taken = [0] * N
            setup = call(k, 'setup', *(['NULL', 5, 6 * N] if k is Named else [6 * N]))
            def first(i):
                gate.wait(); results[i] = errno(cs[i], setup)[0]
                for _ in range(8):
                    if errno(cs[i], call(k, 'take', 1))[0] == 0: taken[i] += 1
            ts = [threading.Thread(target=first, args=(i,)) for i in range(N)]; [t.start() for t in ts]; [t.join() for t in ts]
            got.update(results)
            if results.count(0) != 1 or results.count(30004) != N - 1 or sum(taken) != 6 * N or total(k, watch) != 0: wrong += 1
            run(watch, call(k, 'delete'))
        print(server, k.name, dict(got), 'wrong rounds:', wrong, 'FAILED' if wrong else 'ok', flush=True)
        [c.close() for c in cs]; drop(watch, db)
