#!/usr/bin/env bash
# usage: uninstall.sh MANIFEST [DESTDIR]
#
# Removes what `make install` has put where MANIFEST (CMake's install_manifest.txt) says, what Python compiled beside its
# modules, and the folders that are empty then, but for those that every system has.
set -euo pipefail
manifest=$1 destination=${2:-}
[ -e "$manifest" ] || { echo "uninstall: there is no $manifest: nothing is installed from here" >&2; exit 1; }

declare -A folders=()
count=0
while IFS= read -r path || [ -n "$path" ]; do
  rm -f -- "$destination$path"
  folders[$(dirname "$path")]=1
  case $path in *.py) rm -rf -- "$destination$(dirname "$path")/__pycache__" ;; esac
  count=$((count + 1))
done <"$manifest"

shared='^/$|^(/usr|/usr/local|/opt)$|^/usr/(local/)?(bin|sbin|include|lib|share|share/man|lib/python3[^/]*|lib/python3[^/]*/dist-packages)$'
for folder in "${!folders[@]}"; do
  while ! [[ $folder =~ $shared ]] && rmdir -- "$destination$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
done
[ -n "$destination" ] || ldconfig 2>/dev/null || true
rm -f -- "$manifest"
echo "removed $count files"
