# On a node: a shrink moves the counts to the lowest slot of the node, and the slots of this node go first. usage: steps.py SERVER
from lib import *
import sys
server = sys.argv[1]; c = fresh(server, 'steps', f'{NEW}/counters.sql')
q(c, 'SET GLOBAL auto_increment_increment = 3'); q(c, 'SET GLOBAL auto_increment_offset = 2')
try:
    q(c, "CALL counter_setup('a', NULL, 9, 0)"); q(c, 'UPDATE counters SET counter = counter_id * 10'); A, B = conn(server, 'steps'), conn(server, 'steps'); q(B, 'SET SESSION innodb_lock_wait_timeout = 1')
    q(A, 'BEGIN'); q(A, "UPDATE counters SET counter = counter + 1 WHERE counter_name = 'a' AND counter_id = 7")      # another node writes slot 7
    e = ex(B, "CALL counter_resize('a', 3)"); state = q(c, 'SELECT counter_id, counter FROM counters ORDER BY 1'); q(A, 'COMMIT')
    assert e == 1205 and dict(state)[2] == 20 + 50 + 80 and 5 not in dict(state) and 8 not in dict(state), (e, state)
    e = ex(c, "CALL counter_resize('a', 3)"); state = q(c, 'SELECT counter_id, counter FROM counters ORDER BY 1'); assert e == 0 and state == ((1, 10), (2, 411), (3, 30)), (e, state)
    q(c, 'BEGIN'); q(c, "CALL counter_resize('a', 12)"); q(c, "CALL counter_reset('a', 5, FALSE)"); q(c, 'ROLLBACK'); assert q(c, 'SELECT slots, total FROM counter_totals') == ((3, 451),)
    print('green', server, 'steps')
finally: q(c, 'SET GLOBAL auto_increment_increment = 1'); q(c, 'SET GLOBAL auto_increment_offset = 1')
