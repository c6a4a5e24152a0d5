#!/usr/bin/env bash
# Checks that the tracked C and C++ sources are as clang-format 19 and .clang-format would write them.
# --fix rewrites them instead.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format-19 >/dev/null || { echo "clang-format-19 is not installed: make install-packages" >&2; exit 1; }
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  all() { git ls-files -z -- '*.cpp' '*.hpp' '*.c' '*.h'; }
else  # a tarball
  all() { find . -path ./build -prune -o -type f -regex '.*\.\(cpp\|hpp\|c\|h\)' -print0; }
fi
sources() { all | while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done; }
batches=(xargs -0 -r -n 16 -P "${JOBS:-$(nproc)}" clang-format-19)
if [ "${1:-}" = --fix ]; then
  sources | "${batches[@]}" -i
  exit 0
fi
# One line for each place that differs: FILE:LINE:COLUMN: error: ...
bad=$(sources | "${batches[@]}" --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/  \1/p' | sort -u || true)
if [ -n "$bad" ]; then
  echo "not formatted as .clang-format says ('make format' rewrites them):"
  echo "$bad"
  exit 1
fi
echo "format: ok"
