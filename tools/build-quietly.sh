#!/usr/bin/env bash
# usage: build-quietly.sh PRESET JOBS [TARGET ...]
#
# Configures and builds the preset with one line of progress, on a terminal drawn over and over, elsewhere written once
# for each tenth. Everything the tools say, the compilers' warnings too, is in build/PRESET/build.log; its end is shown when
# something fails.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2
shift 2
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
log=build/$preset/build.log
mkdir -p "build/$preset"

fail() {
  printf '\nbuild: failed; the end of %s:\n' "$log" >&2
  grep -v '^\[' "$log" | tail -n 40 >&2
  exit 1
}

cmake --preset "$preset" --log-level=WARNING >"$log" 2>&1 || fail
began=$SECONDS
# Ninja's lines begin with what NINJA_STATUS says.
NINJA_STATUS='[%f/%t] ' cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" 2>&1 | tee -a "$log" |
  awk -v terminal="$([ -t 1 ] && echo 1)" '
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), of, "/")
      tenth = int(10 * of[1] / of[2])
      if (terminal) { printf "\rbuild: %d of %d files ", of[1], of[2]; fflush() }
      else if (tenth > shown) { shown = tenth; printf "build: %d of %d files\n", of[1], of[2]; fflush() }
    }
    END { if (terminal) printf "\r\033[K" }'
[ "${PIPESTATUS[0]}" = 0 ] || fail
echo "build: done in $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
