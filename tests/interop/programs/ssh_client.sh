#!/bin/sh
# Sends bytes through `cat` of the other end, and compares what comes back.
# usage: ssh_client.sh FOLDER HOST PORT
set -eu
cd "$1"
head -c 300000 /dev/urandom > sent
ssh -F none -i "$1/user_key" -p "$3" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes "$2" cat < sent > got
cmp sent got
echo 300000 bytes the same
