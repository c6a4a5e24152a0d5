#!/bin/sh
# Fetches FOLDER/files/small and large 30 times each on one connection, and compares them.
# usage: compared_files.sh FOLDER HOST PORT
set -eu
folder=$1 url=http://$2:$3
mkdir -p "$folder/got"
cd "$folder/got"
set --
for turn in $(seq 30); do set -- "$@" "$url/small" -o "small.$turn" "$url/large" -o "large.$turn"; done
curl -sSf "$@"
for file in small large; do
  for turn in $(seq 30); do cmp "$file.$turn" "../files/$file"; done
done
echo 60 files the same
