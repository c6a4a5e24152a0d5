#!/bin/sh
# Shows what Weir does, on any machine: a key-value server on TCP, unix socket, TLS, RDMA and TLS over RDMA, measured
# in one run, and somebody else's verbs program on the software NIC. Takes about a minute, needs no privileges, stops
# what it started.
#
#   tools/demo.sh [BUILD_DIRECTORY]     build/release unless told; results go to BUILD_DIRECTORY/demo
set -eu

build=${1:-build/release}
bin=$build/bin
results=$build/demo
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-demo.XXXXXX")
started=''

stop_everything() {
  status=$?
  trap - EXIT INT TERM
  for pid in $started; do
    kill "$pid" 2>/dev/null || true
  done
  for pid in $started; do
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
  exit "$status"
}
trap stop_everything EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  printf '\ndemo: %s\n' "$1" >&2
  if [ -n "${2:-}" ] && [ -s "$2" ]; then
    printf 'demo: the end of its output:\n' >&2
    tail -n 20 "$2" >&2
  fi
  exit 1
}

say() {
  printf '\n\033[1m%s\033[0m\n' "$*"
}

for program in weir weir-server weir-cli weir-benchmark; do
  [ -x "$bin/$program" ] || fail "$bin/$program is not there; build it first: make build"
done
mkdir -p "$results"

# Ports that were free a moment ago; a server that still finds one taken is started again on others.
free_ports() {
  python3 - "$1" <<'END'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
END
}

# Two CPUs for server and client, on different cores if there are; nothing on a machine with one.
two_cpus() {
  python3 - <<'END'
import os
cpus = sorted(os.sched_getaffinity(0))
try:
    with open(f"/sys/devices/system/cpu/cpu{cpus[0]}/topology/thread_siblings_list") as file:
        siblings = {int(n) for part in file.read().split(",") for n in
                    range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
except (OSError, ValueError):
    siblings = {cpus[0]}
others = [cpu for cpu in cpus if cpu not in siblings] or cpus[1:]
if others:
    print(cpus[0], others[0])
END
}

make_certificate() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
    -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout "$work/key.pem" -out "$work/cert.pem" \
    >"$work/openssl.log" 2>&1 || fail 'openssl cannot make a certificate' "$work/openssl.log"
}

answers() {
  [ "$("$bin/weir-cli" "$@" PING 2>/dev/null)" = PONG ]
}

# Asks until the answer comes; 20 s at most, and not after the process has ended.
wait_until_it_answers() {
  pid=$1
  shift
  tries=0
  until answers "$@"; do
    kill -0 "$pid" 2>/dev/null || return 1
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || return 1
    sleep 0.1
  done
}

start_server() {
  # shellcheck disable=SC2046 # two words are wanted
  set -- $(free_ports 2)
  port=$1
  tls_port=$2
  # shellcheck disable=SC2086 # a command and its options, or nothing
  $on_server_cpu "$bin/weir-server" --port "$port" --rdma-port "$port" --unixsocket "$work/weir.sock" \
    --tls-port "$tls_port" --rdma-tls-port "$tls_port" \
    --tls-cert-file "$work/cert.pem" --tls-key-file "$work/key.pem" --tls-ca-cert-file "$work/cert.pem" \
    --tls-auth-clients no --rdma-provider weir >"$work/server.log" 2>&1 &
  server=$!
  started="$started $server"
  wait_until_it_answers "$server" -p "$port"
}

# Placement decides the figures, so it is chosen and said: server and client have a CPU each.
on_server_cpu='' client_cpu=''
# shellcheck disable=SC2046 # two words are wanted
set -- $(two_cpus)
if [ $# -eq 2 ] && command -v taskset >/dev/null; then
  on_server_cpu="taskset -c $1"
  client_cpu="--pin $2"
fi

export WEIR_RDMA_PROVIDER=weir # the software NIC, also where there is hardware: the demo is the same everywhere

say '1. A key-value server on TCP and RDMA, on the same port number'
make_certificate
start_server || start_server || fail 'weir-server does not answer over TCP' "$work/server.log"
printf 'weir-server (pid %s): port %s over TCP and RDMA, port %s with TLS over both, and a unix socket\n' \
  "$server" "$port" "$tls_port"
grep -i rdma "$work/server.log" || true
for way in "-p $port" "-s $work/weir.sock" "-p $tls_port --tls --cacert $work/cert.pem" "-p $port --rdma" \
  "-p $tls_port --rdma --tls --cacert $work/cert.pem"; do
  # shellcheck disable=SC2086 # options, several words
  reply=$("$bin/weir-cli" $way PING 2>&1) || fail "weir-cli $way PING: $reply" "$work/server.log"
  printf '  weir-cli %-66s PING  ->  %s\n' "$(printf '%s' "$way" | sed "s|$work/||g")" "$reply"
  [ "$reply" = PONG ] || fail "weir-cli $way got no PONG" "$work/server.log"
done

say '2. Load it'
"$bin/weir-benchmark" -s "$work/weir.sock" -t set -r 100000 -n 200000 -P 64 -d 16 -q || fail 'loading failed' \
  "$work/server.log"
printf '%s keys\n' "$("$bin/weir-cli" -s "$work/weir.sock" DBSIZE)"

say '3. The same work over each transport'
# shellcheck disable=SC2086 # an option and its value, or nothing
"$bin/weir-benchmark" $client_cpu -p "$port" -s "$work/weir.sock" --tls-port "$tls_port" --rdma-port "$port" \
  --rdma-tls-port "$tls_port" --cacert "$work/cert.pem" --compare tcp,unix,tls,rdma,rdma+tls -t set,get -d 16 -c 1,50 \
  --duration 0.35 --repeat 3 --json "$results/comparison.json" --chart "$results/comparison.svg" \
  --chart "$results/comparison.png" || fail 'the comparison failed' "$work/server.log"
printf '\nCharts: %s, %s\nFigures: %s\n' "$results/comparison.svg" "$results/comparison.png" "$results/comparison.json"

say '4. A program that knows nothing of Weir: ib_write_bw on the software NIC'
perftest_port=$(free_ports 1)
printf '$ weir run -- ib_write_bw -n 20000 & sleep 1\n$ weir run -- ib_write_bw -n 20000 127.0.0.1\n'
"$bin/weir" run -- ib_write_bw -p "$perftest_port" -s 65536 -n 20000 >"$work/ib_server.log" 2>&1 &
ib_server=$!
started="$started $ib_server"
# It listens on TCP to meet its client; the client asks until somebody is there.
tries=0
until "$bin/weir" run -- ib_write_bw -p "$perftest_port" -s 65536 -n 20000 127.0.0.1 >"$work/ib_client.log" 2>&1; do
  kill -0 "$ib_server" 2>/dev/null || fail 'the ib_write_bw that serves has ended' "$work/ib_server.log"
  tries=$((tries + 1))
  [ "$tries" -lt 50 ] || fail 'ib_write_bw failed' "$work/ib_client.log"
  sleep 0.1
done
wait "$ib_server" || fail 'the ib_write_bw that serves failed' "$work/ib_server.log"
cat "$work/ib_client.log"

say 'Done. To go on: build/release/bin/weir --help, and docs/README.md'
