# O1: each statement of the routines that writes, alone in a procedure, waits while an online schema change renames its table: in a routine,
# an earlier SELECT can be the one that waits. usage: TAG=crash servers.sh start NAME; o1_statements.py SERVER
from lib import *
import sys, re, subprocess, os
server = sys.argv[1]
def up():
    subprocess.run([os.path.dirname(os.path.abspath(__file__)) + '/servers.sh', 'start', server], env=dict(os.environ, TAG='crash'), stdout=subprocess.DEVNULL)
    for i in range(100):
        try: return conn(server, tag='crash')
        except Exception: time.sleep(.2)
OLD_FOLD = None
def writes(path):
    """the statements of the routines that change rows, with their routine"""
    out = []
    for m in re.finditer(r'CREATE /\*M!100103 OR REPLACE \*/ PROCEDURE `(\w+)`.*?\nBEGIN\n(.*?)\nEND;;', open(path).read(), re.S):
        body = re.sub(r'--[^\n]*', '', m[2])
        for s in re.finditer(r'((?:/\*M!101108 [^\n]*FOR \*/\s*)?(?:INSERT INTO|UPDATE|DELETE)\b[^;]*?)(?=;)', body):
            out.append((m[1], s[1].strip()))
    return out
VARS = {'p_counter_name': "'a'", 'p_amount': '2', 'v_slots': '5', 'p_slots': '9', 'v_slot': '3', 'v_next': '3', 'p_value': '7', 'p_restart': 'TRUE', 'p_into': '1', 'v_retired': '2', 'v_last': '5', 'p_description': 'NULL',
    'v_tries': '1', 'v_counters': '2', 'v_amounts': "'[[\"a\", 1, \"3\"], [\"b\", 2, \"4\"]]'", 'p_amounts': "'[[1, 1, 1], [1, 2, 2]]'", 'p_record_type': '1', 'p_record_id': '1'}
died, lived, waited = [], [], 0
up()
for pkg in ('counters', 'slotted_counters'):
    for routine, statement in writes(f'{NEW}/{pkg}.sql' if len(sys.argv) < 3 else f'{OLD}/{pkg}/setup.sql'):
        a = fresh(server, 'o1', f'{NEW}/{pkg}.sql', tag='crash'); T = pkg
        text = statement
        json = re.findall(r"p_\w+ (?:BIGINT|VARCHAR\(255\)[^,]*) PATH[^\n]*", text)
        for k, v in VARS.items():
            if k == 'p_counter_name' and routine == 'counter_setup': v = "'c'"
            if json and k in ('p_record_type', 'p_record_id', 'p_amount'): continue
            text = re.sub(rf'\b{k}\b', lambda m: v, text)
        if pkg == 'counters':
            q(a, "CALL counter_setup('a', NULL, 5, 7)"); q(a, "CALL counter_setup('b', NULL, 5, 7)"); q(a, "INSERT INTO counters VALUES ('a', -6, NULL, NOW(), 3), ('a', -7, NULL, NOW(), 0)")
            vals = 'counter_name, counter_id, description, start_date, counter'
            if routine == 'counter_reset': text = text.replace('LIMIT 5', 'LIMIT 7').replace('AND 5 = (', 'AND 7 = (')
        else: q(a, 'INSERT INTO slotted_counters VALUES (1, 1, 0, 5), (1, 1, 3, 6), (1, 1, 5, 0), (1, 2, 4, 7)'); vals = 'record_type, record_id, slot, `count`'
        keep = ' AND '.join(f'{v.strip()} = OLD.{v.strip()}' for v in vals.split(',')[:2 if pkg == 'counters' else 3]); new = ', '.join('NEW.' + v.strip() for v in vals.split(','))
        try: q(a, f'CREATE PROCEDURE one_statement() {text}')
        except Exception as e: print('cannot create', routine, e, text[:300]); continue
        q(a, f'CREATE TABLE _n LIKE {T}'); q(a, f'INSERT INTO _n SELECT * FROM {T}')
        q(a, f'CREATE TRIGGER osc_i AFTER INSERT ON {T} FOR EACH ROW REPLACE INTO _n ({vals}) VALUES ({new})')
        q(a, f'CREATE TRIGGER osc_d AFTER DELETE ON {T} FOR EACH ROW DELETE IGNORE FROM _n WHERE {keep}')
        q(a, f'CREATE TRIGGER osc_u AFTER UPDATE ON {T} FOR EACH ROW BEGIN DELETE IGNORE FROM _n WHERE {keep}; REPLACE INTO _n ({vals}) VALUES ({new}); END')
        before = q(a, f'SELECT * FROM {T}')
        B, C = conn(server, 'o1', tag='crash'), conn(server, 'o1', tag='crash'); q(C, 'BEGIN'); q(C, 'SELECT COUNT(*) FROM _n')
        b = Bg(B, f'RENAME TABLE {T} TO _o, _n TO {T}'); b.waits(.4)
        w = Bg(a, 'CALL one_statement()'); w8 = w.waits(.5); waited += w8
        try: q(C, 'COMMIT')
        except Exception: pass
        w.join(20); b.join(20); time.sleep(.4)
        try: alive = conn(server, tag='crash')
        except Exception: alive = None
        changed = alive and q(alive, f'SELECT * FROM o1.{T}') != before
        (lived if alive else died).append((routine, statement.split('FOR */')[-1].strip()[:20].replace('\n', ' '), 'waited' if w8 else 'DID NOT WAIT', w.result[0], 'changed' if changed else 'UNCHANGED'))
        if not alive: up()
print(('RED  ' if died else 'green'), server, f'{len(lived)} statements lived, {waited} waited; died: {died}')
for l in lived: print('    ', l)
