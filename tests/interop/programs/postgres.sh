#!/bin/sh
# A PostgreSQL server of its own on HOST:PORT, with its data in FOLDER. It does not run as root.
# usage: postgres.sh PROGRAMS FOLDER HOST PORT
set -eu
"$1/initdb" -D "$2/data" -A trust -U weir > /dev/null
exec "$1/postgres" -D "$2/data" -h "$3" -p "$4" -c unix_socket_directories= -c fsync=off -c shared_buffers=16MB
