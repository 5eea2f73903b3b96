# KILL QUERY at any time: a call without an error has taken effect, a failed one has taken effect or not, never in part. usage: kill.py SERVER old|new SECONDS
from lib import *
import sys, random
server, which, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
path = lambda p: f'{OLD}/{p}/setup.sql' if which == 'old' else f'{NEW}/{p}.sql'
DB = 'kill_' + which; c = fresh(server, DB, [path('counters'), path('slotted_counters')])
NAMED = [("CALL counter_setup('{}', NULL, 20, 7)", (0, 0), (20, 7)), ("CALL counter_increment('{}')", (20, 7), (20, 8)), ("CALL counter_add_many('[[\"{}\", 3]]')", (20, 8), (20, 11)), ("CALL counter_reset('{}', 90, FALSE)", (20, 11), (20, 90)),
    ("CALL counter_resize('{}', 50)", (20, 90), (50, 90)), ("CALL counter_resize('{}', 3)", (50, 90), (3, 90)), ("CALL counter_delete('{}')", (3, 90), (0, 0))]
RECORDS = [('CALL slotted_counter_increment(1, {})', (0, 0), (1, 1)), ("CALL slotted_counter_add_many('[[1, {}, 4]]')", (1, 1), (1, 5)), ('CALL slotted_counter_reset(1, {}, 9)', (1, 5), (2, 9)), ('CALL slotted_counter_compact(1, {})', (2, 9), (1, 9)), ('CALL slotted_counter_delete(1, {})', (2, 9), (0, 0))]
stop, problems, stats, ids = [], [], {}, []
def session(n):
    x, check = conn(server, DB), conn(server, DB); ids.append(x.thread_id()); rec = n % 2
    state = f"SELECT COUNT(*), COALESCE(SUM(`count`), 0) FROM slotted_counters WHERE record_id = {n}" if rec else f"SELECT COUNT(*), COALESCE(SUM(counter), 0) FROM counters WHERE counter_name = '{n}'"
    while not stop:
        for call, before, after in RECORDS if rec else NAMED:
            for attempt in range(1000):
                e = ex(x, call.replace('{}', str(n))); now = tuple(int(v) for v in q(check, state)[0])
                same = lambda want: now == want or rec and now[1] == want[1]
                stats[e] = stats.get(e, 0) + 1
                if e == 0 and not same(after): problems.append((call, 'no error', before, after, now)); stop.append(1); return
                if e and e not in (1317, 1105, 1213): problems.append((call, e)); stop.append(1); return
                if e and not (same(before) or same(after) or now[1] == after[1]): problems.append((call, e, now)); stop.append(1); return
                if same(after): break
            if stop: return
ts = [threading.Thread(target=session, args=(n,)) for n in range(4)]
[t.start() for t in ts]; time.sleep(2)
killer, end, kills = conn(server), time.time() + seconds, 0
while time.time() < end and not stop: ex(killer, f'KILL QUERY {random.choice(ids)}'); kills += 1; time.sleep(random.random() * .002)
stop.append(1); [t.join() for t in ts]
print(('RED  ' if problems else 'green'), which, server, f'{kills} kills, results {stats}', problems[:2])
