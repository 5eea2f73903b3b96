# O1: each routine waits while an online schema change by triggers renames its table. usage: TAG=crash servers.sh start NAME; o1.py SERVER old|new
from lib import *
import sys, subprocess, os
server, which = sys.argv[1], sys.argv[2]
path = lambda p: f'{OLD}/{p}/setup.sql' if which == 'old' else f'{NEW}/{p}.sql'
def up():
    env = dict(os.environ, TAG='crash'); subprocess.run([os.path.dirname(__file__) + '/servers.sh', 'start', server], env=env, stdout=subprocess.DEVNULL)
    for i in range(100):
        try: return conn(server, tag='crash')
        except Exception: time.sleep(.2)
CALLS = [('counters', x) for x in ("CALL counter_increment('a')", "CALL counter_add('a', 2)", "CALL counter_add_many('[[\"a\", 1], [\"b\", 2]]')", "CALL counter_reset('a', 5, TRUE)",
    "CALL counter_resize('a', 2)", "CALL counter_resize('a', 9)", "CALL counter_delete('a')", "CALL counter_setup('c', NULL, 5, 0)", "SELECT counter_get('a')")] + \
  [('slotted_counters', x) for x in ('CALL slotted_counter_increment(1, 1)', "CALL slotted_counter_add_many('[[1, 1, 1], [1, 2, 2]]')", 'CALL slotted_counter_reset(1, 1, 5)', 'CALL slotted_counter_compact(1, 1)',
    'CALL slotted_counter_compact_idle(0, 10)', 'CALL slotted_counter_delete(1, 1)')]
if len(sys.argv) > 3: CALLS = [x for x in CALLS if sys.argv[3] in x[1]]
died = []; lived = []
up()
for pkg, call in CALLS:
    a = fresh(server, 'o1', path(pkg), tag='crash'); T = pkg
    if pkg == 'counters': q(a, "CALL counter_setup('a', NULL, 5, 7)"); q(a, "CALL counter_setup('b', NULL, 5, 7)"); key = 'counter_name, counter_id'; vals = 'counter_name, counter_id, description, start_date, counter'
    else: q(a, 'INSERT INTO slotted_counters VALUES (1, 1, 0, 5), (1, 1, 3, 6), (1, 2, 4, 7)'); vals = 'record_type, record_id, slot, `count`'
    if pkg == 'counters' and which == 'new' and 'resize' in call: q(a, "UPDATE counters SET counter_id = -5 WHERE counter_name = 'a' AND counter_id = 5")
    q(a, f'CREATE TABLE _n LIKE {T}'); q(a, f'INSERT INTO _n SELECT * FROM {T}')
    new = ', '.join('NEW.' + v.strip() for v in vals.split(','))
    keep = ' AND '.join(f'{v.strip()} = OLD.{v.strip()}' for v in vals.split(',')[:2 if pkg == 'counters' else 3])
    q(a, f'CREATE TRIGGER osc_i AFTER INSERT ON {T} FOR EACH ROW REPLACE INTO _n ({vals}) VALUES ({new})')
    q(a, f'CREATE TRIGGER osc_d AFTER DELETE ON {T} FOR EACH ROW DELETE IGNORE FROM _n WHERE {keep}')
    q(a, f'CREATE TRIGGER osc_u AFTER UPDATE ON {T} FOR EACH ROW BEGIN DELETE IGNORE FROM _n WHERE {keep}; REPLACE INTO _n ({vals}) VALUES ({new}); END')
    B, C = conn(server, 'o1', tag='crash'), conn(server, 'o1', tag='crash'); q(C, 'BEGIN'); q(C, 'SELECT COUNT(*) FROM _n')
    try: q(a, call if False else 'DO 1')
    except Exception: pass
    b = Bg(B, f'RENAME TABLE {T} TO _o, _n TO {T}'); b.waits(.5)
    w = Bg(a, call); waited = w.waits(.7)
    try: q(C, 'COMMIT')
    except Exception: pass
    w.join(20); b.join(20); time.sleep(.5)
    try: alive = conn(server, tag='crash')
    except Exception: alive = None
    (lived if alive else died).append((call.split('(')[0].replace('CALL ', '') + ('' if waited else ' (did not wait)'), w.result[0] if w.result else None))
    if not alive: up()
print(('RED  ' if died else 'green'), which, server, 'O1: died:', died, 'lived:', lived)
