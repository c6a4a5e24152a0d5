#!/usr/bin/env bash
# usage: install-packages.sh [--list] [--groups "GROUP ..."] [LIST ...]
#
# Installs the packages that the lists name (tools/packages.txt) and that are missing, and nothing else.
#
# A GROUP begins with the line "# NAME" or "# NAME: what for"; all groups unless told. One that no list has is an error.
# --list prints the names of the packages, and installs nothing.
#
# With nothing missing it needs no root, no network and no time. Otherwise it needs root or sudo and Debian's
# package mirror. Packages that bring a service (redis-server) are installed with the service neither started now
# nor enabled for the next boot: the tests start their own servers on free ports.
# WEIR_SKIP_INSTALL=1 leaves the machine alone (for systems where the same tools come from elsewhere).
set -euo pipefail
list= groups=
if [ "${1:-}" = --list ]; then
  list=1
  shift
fi
if [ "${1:-}" = --groups ]; then
  groups=$2
  shift 2
fi
lists=("$@")
[ $# -gt 0 ] || lists=("$(dirname "$0")/packages.txt")

chosen=$(awk -v groups="$groups" '
  BEGIN { all = split(groups, names) == 0; for (i in names) chosen[names[i]] }
  /^# [a-z-]+(:|$)/ { group = $2; sub(/:$/, "", group); known = known " " group; seen[group]; next }
  /^#/ { next }
  NF && (all || group in chosen) { print $1 }
  END {
    for (i in names) if (!(names[i] in seen)) { print "install: there is no group " names[i] "; there are:" known >"/dev/stderr"; exit 1 }
  }' "${lists[@]}")
mapfile -t wanted <<<"$chosen"

if [ -n "$list" ]; then
  echo "$chosen"
  exit 0
fi

if [ "${WEIR_SKIP_INSTALL:-0}" = 1 ]; then
  echo "install: skipped (WEIR_SKIP_INSTALL=1)"
  exit 0
fi

if ! command -v dpkg-query >/dev/null; then
  echo "install: this is not a Debian system. Install what ${lists[*]} names, then set WEIR_SKIP_INSTALL=1." >&2
  exit 1
fi

missing=()
declare -A have=()
while read -r name status; do
  [ "$status" = installed ] && have[$name]=1
done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
for name in "${wanted[@]}"; do
  [ -n "${have[$name]:-}" ] || missing+=("$name")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "install: all ${#wanted[@]} packages are there"
  exit 0
fi
echo "install: ${#missing[@]} of ${#wanted[@]} packages are missing: ${missing[*]}"

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  as_root=(sudo)
else
  echo "install: needs root, and sudo is not there or would ask for a password. As root, run:" >&2
  echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

# invoke-rc.d asks this program whether it may start a service; 101 is "no".
policy=/usr/sbin/policy-rc.d
placed_policy=0
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  placed_policy=1
fi
cleanup() {
  if [ "$placed_policy" = 1 ]; then "${as_root[@]}" rm -f "$policy"; fi
}
trap cleanup EXIT

log="$(mktemp)"
apt() {
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    echo "install: 'apt-get $*' failed; the whole log is $log" >&2
    exit 1
  fi
}
echo "install: apt-get update"
apt update
echo "install: apt-get install (a few minutes on a bare system)"
apt install -y --no-install-recommends "${missing[@]}"
rm -f "$log"

for name in "${missing[@]}"; do
  if [ "$name" = redis-server ] && command -v systemctl >/dev/null; then
    "${as_root[@]}" systemctl disable redis-server.service >/dev/null 2>&1 ||
      echo "install: could not disable redis-server.service; it may start at the next boot" >&2
  fi
done
echo "install: done"
