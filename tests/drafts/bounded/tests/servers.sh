#!/bin/sh
# Starts the three private servers of these tests (or stops them): servers.sh start|stop
# Each has its own folder /dev/shm/bounded-NAME; its pid is in the file "pid" there.
S=$HOME/.cache/slotted/servers
start() { # name port flavour args...
  name=$1 port=$2; shift 2
  d=/dev/shm/bounded-$name
  if [ -S $d/s ] && grep -q "^State:.[RSD]" "/proc/$(cat $d/pid)/status" 2>/dev/null; then return; fi; rm -f $d/s
  mkdir -p $d/tmp
  case $name in
  mysql*)
    [ -d $d/data ] || nice -n 19 $S/mysql-9.7/bin/mysqld --no-defaults --datadir=$d/data --tmpdir=$d/tmp --user=root --initialize-insecure >$d/log 2>&1
    set -- $S/mysql-9.7/bin/mysqld --no-defaults --mysqlx=OFF "$@" ;;
  mariadb*)
    v=${name#mariadb}; b=$S/mariadb-$v
    if ! [ -d $d/data ]; then
      mkdir $d/data
      ( echo 'create database if not exists mysql;'; echo 'use mysql;'; echo 'SET @auth_root_socket=NULL;'
        for f in system_tables performance_tables system_tables_data; do cat $b/share/m*_$f.sql; done
        cat $b/share/maria_add_gis_sp_bootstrap.sql $b/share/m*_sys_schema.sql
      ) | nice -n 19 $b/bin/mariadbd --no-defaults --datadir=$d/data --tmpdir=$d/tmp --user=root --bootstrap >$d/log 2>&1
    fi
    set -- $b/bin/mariadbd --no-defaults "$@" ;;
  esac
  nice -n 19 setsid "$@" --datadir=$d/data --tmpdir=$d/tmp --user=root --socket=$d/s --pid-file=$d/pid --port=$port --bind-address=127.0.0.1 \
    --secure-file-priv= --connect-timeout=120 --max-connections=300 </dev/null >>$d/log 2>&1 &
}
case $1 in
start)
  start mysql9.7 33971 --log-error-verbosity=1
  start mariadb10.11 33972 --log-bin=bin --server-id=1
  start mariadb11.8 33973 --log-bin=bin --server-id=1
  for n in mysql9.7 mariadb10.11 mariadb11.8; do
    i=0; until [ -S /dev/shm/bounded-$n/s ] || [ $i -gt 600 ]; do i=$((i+1)); sleep 0.1; done
    [ -S /dev/shm/bounded-$n/s ] && echo "$n up, pid $(cat /dev/shm/bounded-$n/pid)"
  done ;;
stop)
  for n in mysql9.7 mariadb10.11 mariadb11.8; do
    [ -f /dev/shm/bounded-$n/pid ] && kill "$(cat /dev/shm/bounded-$n/pid)" && echo "$n stopped"
  done ;;
esac
