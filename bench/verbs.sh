#!/usr/bin/env bash
# perftest on the software NIC, beside what the machine allows (copy_tiers), in one run.
# Usage: bench/verbs.sh [BUILD_DIR] [REPEAT]      BUILD_DIR: build/release unless told
# Server and client are pinned to CPUs 0 and 1. Prints Markdown.
set -euo pipefail
build=${1:-build/release}
repeat=${2:-5}
lib=$build/lib/verbs
[ -e "$lib/libibverbs.so.1" ] || { echo "no software NIC in $lib: build first (make build)" >&2; exit 2; }
work=$(mktemp -d)
export WEIR_RUNTIME_DIR=$work/run
mkdir -p "$WEIR_RUNTIME_DIR"
trap 'rm -rf "$work"' EXIT

free_port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }

listening() {  # PORT: is it open for listening?
  local hex
  hex=$(printf ':%04X ' "$1")
  grep -q "$hex.* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# one PROGRAM ARGS...: the client's result line
one() {
  local port server
  port=$(free_port)
  LD_LIBRARY_PATH=$lib taskset -c 0 "$@" -p "$port" >"$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 500); do listening "$port" && break; kill -0 "$server" 2>/dev/null || break; sleep 0.01; done
  LD_LIBRARY_PATH=$lib taskset -c 1 timeout 60 "$@" -p "$port" 127.0.0.1 >"$work/client.log" 2>&1 ||
    { cat "$work/client.log" >&2; exit 1; }
  wait "$server"
  grep -E '^ *[0-9]+ +[0-9]+ ' "$work/client.log" | tail -1
}

median() { sort -g | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }

# row NAME COLUMN UNIT PROGRAM ARGS...
row() {
  local name=$1 column=$2 unit=$3 value
  shift 3
  value=$(for _ in $(seq "$repeat"); do one "$@" | awk -v c="$column" '{print $c}'; done | median)
  printf '| %s | `%s` | %s %s |\n' "$name" "$*" "$value" "$unit"
}

echo '| what | command (server: the same without the address) | median |'
echo '|---|---|---|'
row 'WRITE latency, 64 B' 5 us ib_write_lat -s 64 -n 20000
row 'SEND latency, 64 B' 5 us ib_send_lat -s 64 -n 20000
row 'READ latency, 64 B' 5 us ib_read_lat -s 64 -n 20000
row 'WRITE bandwidth, 64 KiB' 4 MiB/s ib_write_bw -s 65536 -n 20000
row 'WRITE bandwidth, 1 MiB' 4 MiB/s ib_write_bw -s 1048576 -n 2000
row 'SEND bandwidth, 64 KiB' 4 MiB/s ib_send_bw -s 65536 -n 20000
row 'READ bandwidth, 1 MiB' 4 MiB/s ib_read_bw -s 1048576 -n 2000
echo
echo 'What the machine allows (no NIC around it):'
echo
echo '```'
taskset -c 1 "$build/bin/copy_tiers" --repeat "$repeat"
echo '```'
