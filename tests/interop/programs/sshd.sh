#!/bin/sh
# An OpenSSH server of its own, with keys in FOLDER, for whoever runs it.
# usage: sshd.sh FOLDER HOST PORT
set -eu
cd "$1"
ssh-keygen -q -t ed25519 -N '' -f host_key
ssh-keygen -q -t ed25519 -N '' -f user_key
cp user_key.pub authorized_keys
cat > sshd_config << CONF
HostKey $1/host_key
AuthorizedKeysFile $1/authorized_keys
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
CONF
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f "$1/sshd_config" -o "ListenAddress=$2:$3"
