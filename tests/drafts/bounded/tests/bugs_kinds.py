from lib import *
class OldNamed(Named):
    file, prefix, table, setup = OLD + '/counters/setup.sql', 'counter_', 'counters', "CALL counter_setup('s', NULL, %d, %d)"
class OldKeyed(Keyed):
    file, prefix, table = OLD + '/slotted_counters/setup.sql', 'slotted_counter_', 'slotted_counters'
    @classmethod
    def make(k, c, slots, value): run(c, 'INSERT INTO slotted_counters VALUES (1, 7, 0, %d)' % value)
def old(): return [k for k in (OldNamed, OldKeyed) if k.name in sys.argv[1:] or not {'named', 'keyed'} & set(sys.argv[1:])]
