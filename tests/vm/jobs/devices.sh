# Both devices beside each other: `weir devices` lists the kernel's and the software NIC, and the same unmodified program
# runs on either.
set -eu
weir="$WEIR_BUILD/bin/weir"
"$weir" devices | tee /tmp/devices
grep -q '^rxe0  (hardware)' /tmp/devices
grep -q '^weir0  (software' /tmp/devices

one_pingpong() { # NAME COMMAND...: a pair of ibv_rc_pingpong, each started by COMMAND
  name=$1
  shift
  echo "== ibv_rc_pingpong on $name"
  "$@" ibv_rc_pingpong -g 1 -e -n 200 > /tmp/server.out 2>&1 &
  server=$!
  until ss -ltn | grep -q :18515; do kill -0 $server; done
  "$@" ibv_rc_pingpong -g 1 -e -n 200 localhost
  wait $server
}
one_pingpong rxe0 env
one_pingpong weir0 "$weir" run --
