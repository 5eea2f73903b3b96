import sys; sys.path.insert(0, __import__('os').path.dirname(__import__('os').path.abspath(__file__)))
from lib import *
for s in SERVERS:
    c=connect(s); run(c,'DROP DATABASE IF EXISTS q'); run(c,'CREATE DATABASE q'); run(c,'USE q')
    run(c,"CREATE TABLE ck (a INT PRIMARY KEY, c BIGINT NOT NULL DEFAULT 0, CONSTRAINT ck_not_negative CHECK (c >= 0))")
    run(c,"CREATE TABLE un (a INT PRIMARY KEY, c BIGINT UNSIGNED NOT NULL DEFAULT 0)")
    print('==',s)
    modes={'strict':'STRICT_TRANS_TABLES','non-strict':'','non-strict NO_UNSIGNED_SUBTRACTION':'NO_UNSIGNED_SUBTRACTION','strict NO_UNSIGNED_SUBTRACTION':'STRICT_TRANS_TABLES,NO_UNSIGNED_SUBTRACTION'}
    for t in ('ck','un'):
        for m,v in modes.items():
            for off in ((0,1) if 'maria' in s and t=='ck' else (0,)):
                run(c,'SET sql_mode=%s',v)
                if 'maria' in s: run(c,'SET check_constraint_checks=%s',1-off)
                out=[]
                for st in ('UPDATE {t} SET c = c - 9','UPDATE {t} SET c = c + -9','UPDATE {t} SET c = -9',"UPDATE {t} SET c = c + '-9'",'UPDATE IGNORE {t} SET c = c - 9','INSERT INTO {t} VALUES (1,5) ON DUPLICATE KEY UPDATE c = c - 9','INSERT INTO {t} VALUES (1,-9) ON DUPLICATE KEY UPDATE c = c + 1','REPLACE INTO {t} VALUES (1,-9)','INSERT IGNORE INTO {t} VALUES (2,-9)'):
                    run(c,'SET check_constraint_checks=1') if 'maria' in s else None
                    run(c,'DELETE FROM '+t); run(c,'INSERT INTO '+t+' VALUES (1,5)')
                    if 'maria' in s: run(c,'SET check_constraint_checks=%s',1-off)
                    e=errno(c,st.format(t=t)); r=run(c,'SELECT c FROM '+t+' ORDER BY a')
                    out.append('%s->%s'%(e[0],','.join(str(x[0]) for x in r)))
                print(t,m,'OFF' if off else '',out)
    print(errno(c,'UPDATE ck SET c=-9') if 'maria' not in s else (run(c,'SET check_constraint_checks=1'),errno(c,'UPDATE ck SET c=-9')))
    run(c,"SET sql_mode='STRICT_TRANS_TABLES'");print(errno(c,'UPDATE un SET c=c-90'),errno(c,'UPDATE un SET c=-9'))
    run(c,"SET sql_mode='STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'")
    print('mod0', errno(c,'UPDATE ck SET c=5 WHERE a = 1 + MOD(CONNECTION_ID() * 3, 2 - MOD(2, 2))'), errno(c,'INSERT INTO ck VALUES (1+MOD(5,0),1)'), errno(c,'UPDATE ck SET c=5 WHERE a = 1 + MOD(CONNECTION_ID() * 3, NULLIF(2 - MOD(2, 2),0))'))
