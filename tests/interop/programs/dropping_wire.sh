#!/bin/sh
# usage: dropping_wire.sh COMMAND...
# Runs COMMAND while this host's end of the wire (two_namespaces.py) drops all that is sent, for some ten milliseconds at a time.
# Anywhere else it only runs COMMAND: it must not touch an interface of the machine's own.
if [ -n "$(ip -4 address show dev wire to 10.77.0.0/24 2>/dev/null)" ]; then
    tc qdisc replace dev wire root pfifo limit 1000 || exit 1
    # Three questions a second apart for the other end's link address may all be lost.
    ip ntable change name arp_cache dev wire mcast_probes 50 ucast_probes 50 retrans 50 || exit 1
    (
        while kill -0 $$ 2>/dev/null; do
            tc qdisc replace dev wire root pfifo limit 0
            sleep 0.01
            tc qdisc replace dev wire root pfifo limit 1000
            sleep 0.07
        done
    ) </dev/null >/dev/null 2>&1 &
fi
exec "$@"
