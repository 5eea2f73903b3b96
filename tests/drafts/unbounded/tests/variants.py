# R7, F8, F9: keys of type CHAR and DATE. Old: rendered by the tool of the state before (slotted generate slotted_counters --key ...). New: slotted_counters.sql
# with the parameter types and the check of entries that NOTES.md proposes for such keys. usage: variants.py SERVER old|new
from lib import *
import sys, re
server, which = sys.argv[1], sys.argv[2]
maria = server.startswith('maria')
NOPAD = 'utf8mb4_nopad_bin' if maria else 'utf8mb4_0900_ai_ci'
def day(text):   # the record type becomes a DATE
    t = text.replace('record_type INT NOT NULL', 'record_type DATE NOT NULL').replace('p_record_type BIGINT PATH', 'p_record_type DATE PATH')
    t = t.replace('p_record_type BIGINT', 'p_record_type DATETIME(6)').replace('v_record_type INT', 'v_record_type DATE')
    t = t.replace("p_record_type BETWEEN -2147483648 AND 2147483647", "p_record_type BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'").replace("p_record_type NOT BETWEEN -2147483648 AND 2147483647", "p_record_type NOT BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'")
    t = t.replace('record_type = p_record_type', 'record_type = DATE(p_record_type)').replace('VALUES (p_record_type,', 'VALUES (DATE(p_record_type),').replace('SELECT p_record_type, p', 'SELECT DATE(p_record_type), p')
    t = t.replace('CAST(json_0 AS CHAR) = CAST(p_record_type AS CHAR)', "CAST(json_0 AS CHAR) = CONCAT('\"', CAST(p_record_type AS CHAR), '\"')")
    return t
def char(text):
    t = text.replace('record_type INT NOT NULL', f'record_type CHAR(10) CHARACTER SET utf8mb4 COLLATE {NOPAD} NOT NULL').replace('p_record_type BIGINT PATH', f'p_record_type VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {NOPAD} PATH')
    t = t.replace('p_record_type BIGINT', f'p_record_type CHAR(255) CHARACTER SET utf8mb4 COLLATE {NOPAD}').replace('v_record_type INT', f'v_record_type CHAR(10) CHARACTER SET utf8mb4 COLLATE {NOPAD}')
    t = t.replace("p_record_type BETWEEN -2147483648 AND 2147483647", "CHAR_LENGTH(p_record_type) <= 10").replace("p_record_type NOT BETWEEN -2147483648 AND 2147483647", "CHAR_LENGTH(p_record_type) > 10")
    t = t.replace('CAST(json_0 AS CHAR) = CAST(p_record_type AS CHAR)', "JSON_TYPE(json_0) = 'STRING'").replace('SELECT p_record_type AS record_type', 'SELECT RTRIM(p_record_type) AS record_type')
    return t
def report(name, green, what): print(f'{"green" if green else "RED  "} {which} {server} {name}: {what}')
order = (lambda d, i: f"{d}, {i}") if which == 'new' else (lambda d, i: f"{i}, {d}")
c = fresh(server, 'var_' + which, NEW + '/slotted_counters.sql' if which == 'new' else '/tmp/var/day/slotted_counters/setup.sql', sub=day if which == 'new' else None)
P = 'slotted_counter_'
e = [ex(c, f"CALL {P}increment({order(x, 1)})") for x in ("CAST('2026-11-23 23:59:59.7' AS DATETIME(6))", "TIMESTAMP'2026-11-23 12:00:00'", "'2026-11-23'", "'2026-11-23 23:59:59.999999'")]
col = 'record_type' if which == 'new' else '`day`'
days = q(c, f'SELECT CAST({col} AS CHAR), SUM(`count`) FROM slotted_counters GROUP BY 1')
late = order("CAST('2026-11-23 23:59:59.7' AS DATETIME(6))", 1)
got = one(c, f'SELECT {P}get({late})')
report('F8', e == [0] * 4 and list(days) == [('2026-11-23', 4)] and got == 4, f'{e} {days}; get {got}')
bad = [err(c, "CALL " + P + "add_many(%s)", ('[[' + order(f'"{d}"', 1) + ', 1]]',))[0] for d in ('2026-11-23abc', '2026-11-23T10:00:00.000Z', '2026-11-23T10:00:00+02:00', '2026-11-23 10:00:00')]
good = ex(c, "CALL " + P + "add_many(%s)", ('[[' + order('"2026-11-23"', 1) + ', 1]]',))
inc = [ex(c, f"CALL {P}increment({order(repr(d), 1)})") for d in ('2026-11-23abc',)]
report('F9', good == 0 and all(b == 30015 for b in bad), f'entries with more than a date: {bad}, a date: {good}; increment of 2026-11-23abc: {inc}')
c = fresh(server, 'var_' + which, NEW + '/slotted_counters.sql' if which == 'new' else '/tmp/var/char/slotted_counters/setup.sql', sub=char if which == 'new' else lambda t: t.replace('utf8mb4_0900_ai_ci', NOPAD))
q(c, f"CALL {P}add('a ', 1, 5)"); many = ex(c, f"CALL {P}add_many('[[\"a \", 1, 2]]')"); get = [one(c, f"SELECT {P}get('{x}', 1)") for x in ('a', 'a ')]
q(c, f"CALL {P}reset('a ', 1, 3)"); after = one(c, f"SELECT {P}get('a', 1)"); q(c, f"CALL {P}compact('a  ', 1)"); q(c, f"CALL {P}delete('a ', 1)"); left = one(c, 'SELECT COUNT(*) FROM slotted_counters')
long = ex(c, f"CALL {P}add('0123456789x', 1, 5)")
report('R7', get == [7, 7] and after == 3 and left == 0 and long == 30010, f'get of a and a-blank {get}, after the reset {after}, rows after the delete {left}, too long {long}, add_many {many}')
