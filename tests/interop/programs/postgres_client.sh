#!/bin/sh
# usage: postgres_client.sh HOST PORT
set -eu
until psql -h "$1" -p "$2" -U weir -Atc 'select 1' postgres > /dev/null 2>&1; do :; done
pgbench -h "$1" -p "$2" -U weir -i -q postgres 2> /dev/null
pgbench -h "$1" -p "$2" -U weir -S -n -c 4 -t 2000 postgres
psql -h "$1" -p "$2" -U weir -Atc "select 'sum ' || count(*) from pgbench_accounts" postgres
