# weir-server on the system's device: clients over TCP, RDMA and TLS over RDMA see the same data; a client killed in the
# middle of its work harms nobody; it ends when told to.
set -eu
bin="$WEIR_BUILD/bin"
at="$WEIR_TEST_RDMA_ADDRESS"
cd /tmp
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj "/CN=$at" -addext "subjectAltName=IP:$at" 2> /dev/null
"$bin/weir-server" --bind 127.0.0.1 --port 7000 --rdma-bind "$at" --rdma-port 7000 --rdma-provider system \
  --rdma-tls-port 7001 --tls-cert-file cert.pem --tls-key-file key.pem --tls-auth-clients no > server.log 2>&1 &
server=$!
trap 'cat server.log' EXIT
until grep -q 'Ready to accept' server.log; do kill -0 $server; done
grep 'RDMA: system RDMA rxe0' server.log

rdma() { "$bin/weir-cli" --rdma --rdma-provider system -h "$at" -p 7000 "$@"; }
secure() { "$bin/weir-cli" --rdma --tls --cacert cert.pem --rdma-provider system -h "$at" -p 7001 "$@"; }
tcp() { redis-cli -h 127.0.0.1 -p 7000 "$@"; }
same() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; exit 1; }; }
same "$(rdma set key "over rdma")" OK
same "$(tcp get key)" "over rdma"
same "$(secure append key ", then tls")" 19
same "$(rdma get key)" "over rdma, then tls"
head -c 3000000 /dev/urandom | base64 -w0 > big
rdma -x set big < big
tcp get big | cmp - <(cat big; echo)
tcp info rdma

echo "== twenty connections over RDMA while others come over TCP"
"$bin/weir-benchmark" -h 127.0.0.1 -p 7000 -c 5 -n 1000 -t set,get --csv > tcp.csv &
over_tcp=$!
"$bin/weir-benchmark" --rdma --rdma-provider system -h "$at" -p 7000 -c 20 -n 2000 -t set,get,lpush --csv
wait $over_tcp

echo "== a client killed in the middle"
"$bin/weir-benchmark" --rdma --rdma-provider system -h "$at" -p 7000 -c 5 -n 1000000 -t set --csv > /dev/null 2>&1 &
victim=$!
until [ "$(tcp info rdma | sed -n 's/rdma_connected_clients:\([0-9]*\).*/\1/p')" -ge 5 ]; do kill -0 $victim; done
kill -9 $victim
until [ "$(tcp info rdma | sed -n 's/rdma_connected_clients:\([0-9]*\).*/\1/p')" = 0 ]; do kill -0 $server; done
same "$(rdma get key)" "over rdma, then tls"

kill $server
wait $server
