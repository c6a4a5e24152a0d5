#!/usr/bin/env bash
# Builds the libFuzzer targets (preset fuzz) and runs each for some seconds on a copy of its corpus.
# usage: run-fuzzers.sh SECONDS [TARGET ...]
# What crashes a target stays in build/fuzz/found/TARGET/; exit status 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds for each target}
shift
cmake --preset fuzz --log-level=WARNING
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}" --target fuzz_targets
if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(find build/fuzz/fuzz -maxdepth 1 -type f -executable -printf '%f\n' | sort); fi
failed=()
for target in "${targets[@]}"; do
  found=build/fuzz/found/$target
  grown=build/fuzz/corpus/$target
  mkdir -p "$found" "$grown"
  echo "=== $target, $seconds s"
  if ! build/fuzz/fuzz/"$target" -max_total_time="$seconds" -print_final_stats=1 -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix="$found/" "$grown" "tests/fuzz/corpus/$target" 2>&1 | tail -n 25; then
    failed+=("$target")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "crashed: ${failed[*]} (inputs in build/fuzz/found/)"
  exit 1
fi
echo "${#targets[@]} targets, none crashed"
