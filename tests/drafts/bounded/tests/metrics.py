"""Lines of each routine's body, median, and fragments of 8 lines that stand more than twice in a file. metrics.py FILE..."""
import sys, re, statistics, collections
for f in sys.argv[1:]:
    text = open(f).read(); lines = text.splitlines(); bodies = {}
    for m in re.finditer(r"CREATE /\*M!100103 OR REPLACE \*/ (?:PROCEDURE|FUNCTION) `(\w+)`.*?\n(?=(?:\w+: )?BEGIN\n|CALL )(.*?);;\n", text, re.S):
        bodies[m[1]] = m[2].count('\n') + 1
    # a fragment: 8 lines of code in sequence, comments, blank lines and COMMENT manuals left out
    code, inside = [], False
    for l in lines:
        s = l.strip()
        if s.startswith("COMMENT '") and not s.endswith("'") and not s.endswith("',"): inside = True
        if not inside and s and not s.startswith('--'): code.append(s)
        if inside and (s.endswith(");'") or s.endswith("total;'") or s.endswith(".'") or s.endswith("'")): inside = False
    c = collections.Counter(tuple(code[i:i + 8]) for i in range(len(code) - 7))
    many = [x for x, n in c.items() if n > 2]
    print(f.split('/')[-1], 'lines', len(lines), 'median body', statistics.median(bodies.values()), 'longest', max(bodies.items(), key=lambda x: x[1]), 'fragments of 8 lines more than twice:', len(many))
    print('  ', sorted(bodies.items(), key=lambda x: -x[1]))
    if '-v' in sys.argv:
        for x in many: print('   ', ' / '.join(x)[:200])
