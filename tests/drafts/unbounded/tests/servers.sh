#!/bin/bash
# Starts or stops private servers of these tests: servers.sh start|stop NAME...   (mysql-9.7 mariadb-10.11 mariadb-11.8)
# A server's files: /dev/shm/unbounded-NAME[-TAG]; its pid is in the file pid. TAG from the environment (for crash tests).
cmd=$1; shift
for name in "$@"; do
  dir=/dev/shm/unbounded-$name${TAG:+-$TAG}; root=$HOME/.cache/slotted/servers/$name
  if [ $cmd = stop ]; then
    [ -f $dir/pid ] && pid=$(cat $dir/pid) && grep -q "$dir" /proc/$pid/cmdline 2>/dev/null && kill -9 $pid && sleep 0.5; rm -rf $dir; continue
  fi
  mkdir -p $dir/tmp
  common="--no-defaults --datadir=$dir/data --tmpdir=$dir/tmp --user=root"
  if [[ $name = mysql* ]]; then bin=$root/bin/mysqld
    [ -d $dir/data ] || nice -n 19 $bin $common --initialize-insecure >$dir/log 2>&1
    extra="--mysqlx=OFF"
  else bin=$root/bin/mariadbd
    if [ ! -d $dir/data ]; then mkdir $dir/data; s=$root/root/usr/share/mariadb; [ -d $s ] || s=/usr/share/mysql
      p=mariadb; [ -f $s/mariadb_system_tables.sql ] || p=mysql
      { printf 'create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n'; cat $s/${p}_system_tables.sql $s/${p}_performance_tables.sql $s/${p}_system_tables_data.sql $s/maria_add_gis_sp_bootstrap.sql $s/${p}_sys_schema.sql; } | nice -n 19 $bin $common --bootstrap >$dir/log 2>&1
    fi
    extra="--log-bin=$dir/data/binlog --binlog-format=MIXED"
  fi
  rm -f $dir/pid
  nohup nice -n 19 $bin $common --socket=$dir/s --pid-file=$dir/pid --skip-networking --secure-file-priv= --connect-timeout=120 --log-bin-trust-function-creators=1 --server-id=1 --max-connections=300 $extra $EXTRA >>$dir/log 2>&1 &
  for i in $(seq 600); do [ -S $dir/s ] && [ -f $dir/pid ] && break; sleep 0.1; done
  echo "$name $dir/s pid $(cat $dir/pid 2>/dev/null)"
done
