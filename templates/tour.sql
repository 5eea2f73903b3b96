-- The tour of the 2012 article "Avoid locks when storing counters in MySQL", statement by statement.
call counter_setup('test1','test1',NULL,NULL);
call counter_setup('test2','test2',10,1000);
call counter_setup('test3','test3',1,NULL);
select * from counters;
call counter_increment('test2');
call counter_increment('test2');
call counter_increment('test2');
call counter_increment('test2');
call counter_increment('test2');
SELECT counter_get('test2') AS total;
SELECT * FROM counters WHERE counter_name = 'test2';
call counter_reset('test2',1000,TRUE);
SELECT * FROM counters WHERE counter_name = 'test2';
call counter_drop('test2');
