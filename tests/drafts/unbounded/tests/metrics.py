# Lines of files, bodies and routines; fragments of 8 lines that stand more than twice.
import re, sys, statistics, collections
for path in sys.argv[1:]:
    text = open(path).read(); lines = text.split('\n')
    bodies, whole = {}, {}
    for m in re.finditer(r'CREATE /\*M!100103 OR REPLACE \*/ (?:PROCEDURE|FUNCTION) `(\w+)`.*?;;', text, re.S):
        name, t = m[1], m[0]; whole[name] = t.count('\n') + 1
        b = t[t.index('\nBEGIN'):] if '\nBEGIN' in t else '\nx'
        bodies[name] = b.strip('\n').count('\n') + 1
    frag = collections.Counter()
    code = [l.strip() for l in lines]
    for i in range(len(code) - 7):
        w = code[i:i+8]
        if all(w): frag['\n'.join(w)] += 1
    often = {k: v for k, v in frag.items() if v > 2}
    print(f"{path}: {text.count(chr(10))} lines; {len(bodies)} routines; bodies {sum(bodies.values())}, median {statistics.median(bodies.values())}, greatest {max(bodies.items(), key=lambda x: x[1])}; greatest routine {max(whole.items(), key=lambda x: x[1])}; fragments of 8 lines more than twice: {len(often)}")
    print('   ', bodies)
    if '-v' in sys.argv: pass
