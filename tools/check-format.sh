#!/usr/bin/env bash
# Checks that the tracked C and C++ sources are as clang-format 19 and .clang-format would write them.
# --fix rewrites them instead.
set -euo pipefail
cd "$(dirname "$0")/.."
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  sources() { git ls-files -z -- '*.cpp' '*.hpp' '*.c' '*.h'; }
else  # a tarball
  sources() { find . -path ./build -prune -o -type f -regex '.*\.\(cpp\|hpp\|c\|h\)' -print0; }
fi
if [ "${1:-}" = --fix ]; then
  sources | xargs -0 -r clang-format-19 -i
  exit 0
fi
bad=0
while IFS= read -r -d '' file; do
  [ -e "$file" ] || continue
  if ! clang-format-19 --dry-run -Werror "$file" >/dev/null 2>&1; then
    [ $bad -gt 0 ] || echo "not formatted as .clang-format says ('make format' rewrites them):"
    echo "  $file"
    bad=$((bad + 1))
  fi
done < <(sources)
[ $bad -eq 0 ] && echo "format: ok"
exit $((bad > 0))
