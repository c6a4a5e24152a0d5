#!/bin/sh
# usage: on_another_host.sh PID HOST COMMAND...
# What ssh is to mpirun: runs COMMAND in the network namespace of process PID, which has another host name, and without the environment
# of `weir run`. HOST is that namespace's address, which says nothing new.
process=$1
shift 2
exec nsenter --target "$process" --net --preserve-credentials -- unshare --uts -- \
    sh -c 'hostname another && unset LD_PRELOAD LD_LIBRARY_PATH && exec sh -c "$1"' sh "$*"
