# Connections to the private servers of servers.sh, and a loader of scripts with DELIMITER.
import pymysql, re, time, os, threading
SERVERS = ['mysql-9.7', 'mariadb-10.11', 'mariadb-11.8']
def conn(server, db=None, tag='', **kw):
    c = pymysql.connect(unix_socket=f'/dev/shm/unbounded-{server}{"-"+tag if tag else ""}/s', user='root', password='', database=db, autocommit=True, charset='utf8mb4', read_timeout=120, ssl_disabled=True, **kw)
    return c
def q(c, sql, args=None):
    with c.cursor() as k:
        k.execute(sql, args); return k.fetchall()
def one(c, sql, args=None):
    r = q(c, sql, args); return r[0][0] if r else None
def ex(c, sql, args=None):
    """the error number, or 0"""
    try:
        with c.cursor() as k: k.execute(sql, args)
        return 0
    except pymysql.err.MySQLError as e:
        return e.args[0]
def err(c, sql, args=None):
    try:
        with c.cursor() as k: k.execute(sql, args)
        return (0, '')
    except pymysql.err.MySQLError as e:
        return e.args[0], e.args[1]
def statements(text):
    out, cur, delim = [], [], ';'
    for line in text.split('\n'):
        m = re.match(r'^DELIMITER (\S+)', line)
        if m: delim = m[1]; continue
        if not cur and (line.startswith('--') or not line.strip()): continue
        cur.append(line)
        if line.rstrip().endswith(delim):
            s = '\n'.join(cur).rstrip()[:-len(delim)]
            if s.strip(): out.append(s)
            cur = []
    assert not ''.join(cur).strip(), cur
    return out
def install(c, path, sub=None):
    text = open(path).read()
    if sub: text = sub(text)
    for s in statements(text): 
        try: q(c, s)
        except Exception as e: raise Exception(f'{path}: {s[:200]} ...: {e}') from e
def fresh(server, db, path=None, tag='', sub=None):
    c = conn(server, tag=tag); q(c, f'DROP DATABASE IF EXISTS {db}'); q(c, f'CREATE DATABASE {db} CHARACTER SET utf8mb4'); q(c, f'USE {db}')
    for p in ([path] if isinstance(path, str) else path or []): install(c, p, sub)
    return c
def at(server, db, residue, modulo, tag='', **kw):
    """a connection whose id modulo `modulo` is `residue`"""
    drop = []
    while True:
        c = conn(server, db, tag=tag, **kw)
        if c.thread_id() % modulo == residue: break
        drop.append(c)
        if len(drop) > 40: [d.close() for d in drop]; drop = []
    for d in drop: d.close()
    return c
class Bg(threading.Thread):
    """a statement in the background"""
    def __init__(s, c, sql, args=None):
        super().__init__(daemon=True); s.c, s.sql, s.args, s.result = c, sql, args, None; s.start()
    def run(s): s.result = err(s.c, s.sql, s.args)
    def waits(s, t=0.3): s.join(t); return s.is_alive()
    def end(s, t=60): s.join(t); assert not s.is_alive(), 'still waits: ' + s.sql; return s.result
OLD = 'generated'
NEW = 'tests/drafts/unbounded'
