#!/bin/sh
# stress-ng's programs of sockets, which check what they receive. Their workers are forked and killed, and the next process that
# opens the NIC cleans up after them.
set -eu

# The epoll program's servers listen on four ports in a row. If one of them cannot, stress-ng asks that one in vain until its time is
# up, and says that all went well. So they are below the ports that clients get: those can be in TIME_WAIT.
port=$(python3 - << 'END'
import pathlib
import random
import socket

MOST_TRIES = 1000
lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def bindable(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("", port))
        except OSError:
            return False
    return True


print(next(first for first in (random.randrange(1024, lowest - 4) for _ in range(MOST_TRIES)) if all(map(bindable, range(first, first + 4)))))
END
)
for one in sock:300 sockmany:1000 sockabuse:100 sockfd:1000 epoll:2000; do
  name=${one%:*} domain=
  [ "$name" != epoll ] || domain="--epoll-domain ipv4"
  said=$(stress-ng --"$name" 1 --"$name"-ops "${one#*:}" --"$name"-port "$port" --timeout 60 --verify $domain 2>&1) && failed=0 || failed=$?
  echo "$said"
  case $said in *"fail: "*) failed=1 ;; esac
  [ $failed = 0 ]
done
ibv_devinfo > /dev/null
echo all stressors ended well
