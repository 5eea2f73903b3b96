# Times of maintenance and of add_many, old and new. usage: maint.py SERVER
from lib import *
import sys
server = sys.argv[1]; out = {}
def t(name, w, c, sql, n=1):
    a = time.time()
    for _ in range(n): q(c, sql)
    out.setdefault(name, {})[w] = (time.time() - a) / n * 1000
for w in ('old', 'new'):
    c = fresh(server, 'maint_' + w, [f'{OLD}/{p}/setup.sql' if w == 'old' else f'{NEW}/{p}.sql' for p in ('counters', 'slotted_counters')])
    t('setup of 10000 slots', w, c, "CALL counter_setup('big', NULL, 10000, 0)"); q(c, 'UPDATE counters SET counter = 3')
    t('reset of 10000 slots', w, c, "CALL counter_reset('big', 7, TRUE)")
    t('resize 10000 to 1000', w, c, "CALL counter_resize('big', 1000)"); t('resize 1000 to 3000', w, c, "CALL counter_resize('big', 3000)")
    q(c, "CALL counter_setup('a', NULL, 100, 0)"); q(c, "UPDATE counters SET counter = 3 WHERE counter_name = 'a'"); t('reset of 100 slots', w, c, "CALL counter_reset('a', 7, FALSE)", 20)
    for i in range(100): q(c, f"CALL counter_setup('m{i}', NULL, 20, 0)")
    t('add_many of 100 counters', w, c, "CALL counter_add_many('[" + ', '.join(f'["m{i}", 1]' for i in range(100)) + "]')", 20)
    t('slotted add_many of 100', w, c, "CALL slotted_counter_add_many('[" + ', '.join(f'[1, {i}, 1]' for i in range(100)) + "]')", 20)
    q(c, "INSERT INTO slotted_counters SELECT 9, 9, counter_id, 1 FROM counters WHERE counter_name = 'big' AND counter_id < 520"); t('slotted reset of 520', w, c, 'CALL slotted_counter_reset(9, 9, 5)', 5); t('compact of 520 slots', w, c, 'CALL slotted_counter_compact(9, 9)'); t('compact of 1 slot', w, c, 'CALL slotted_counter_compact(9, 9)', 50)
    t('delete of 3000 slots', w, c, "CALL counter_delete('big')")
print(server, 'ms, old / new:', '; '.join(f'{n} {v["old"]:.1f} / {v["new"]:.1f}' for n, v in out.items()))
