import sys; sys.path.insert(0,'tests/drafts/bounded/tests')
from lib import *
qs=dict((b.split('\n',1)[0],b.split('\n',1)[1]) for b in open(NEW+'/bounded_counters_queries.sql').read().split('-- name: ')[1:])
st=lambda n: '\n'.join(l for l in qs[n].split('\n') if not l.startswith('--')).strip().rstrip(';')
for s in SERVERS:
    db,c=fresh(s,Named.file); q=lambda n,*a: c.cursor().execute(st(n).replace('%','%%').replace('?','%s'),a)
    q('setup','s','d',50,9); n=run(c,st('slots').replace('?','%s'),'s')[0][0]; assert n==9
    assert q('increment','s',n)==1 and q('increment_on_nodes','s',n)==1 and q('add',5,'s',n)==1 and q('add_on_nodes',3,'s',n)==1; assert total(Named,c)==60
    assert q('take',2,'s',n,2)==1 and q('take_on_nodes',1,'s',n,1)==1 and q('take_from_slot',50,'s',1,50) in (0,1)
    assert errno(c,st('add').replace('?','%s'),-500,'s',n)[0] in (3819,4025); t=total(Named,c)
    for i in range(9,3,-1): q('remove_slot','s','s',i); q('delete_removed','s',i)
    assert len(rows(Named,c))==3 and total(Named,c)==t; q('grow','s',12); assert len(rows(Named,c))==12 and total(Named,c)==t
    q('reset',7,'s','s',1); assert total(Named,c)==7 and q('get','s')==1; q('totals'); q('highest_slot','s'); q('slots_to_take_from','s',1); q('delete','s','s','s'); assert rows(Named,c)==[]
    drop(c,db); print(s,'queries of named counters ok')
