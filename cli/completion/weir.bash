# Completion for weir, weir-cli, weir-benchmark, weir-server and weir-check.

# words: those of the line up to the cursor, put together again where readline splits them, as tcp://HOST:PORT at its
# colons; starts: where in COMP_WORDS each begins; word, previous: the last two.
_weir_words() {
  local line=$COMP_LINE piece rest i
  words=() starts=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    rest=${line#"${line%%[![:space:]]*}"}
    if ((i == 0)) || [[ -z $piece || $rest != "$line" ]]; then
      words+=("$piece") starts+=("$i")
    else
      words[-1]+=$piece
    fi
    line=${rest#"$piece"}
  done
  word=${words[-1]} previous=
  if ((${#words[@]} > 1)); then previous=${words[-2]}; fi
}

# Completes $word with those of $1 that fit.
_weir_choose() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_weir_files() { mapfile -t COMPREPLY < <(compgen -f -- "$word"); }
_weir_directories() { mapfile -t COMPREPLY < <(compgen -d -- "$word"); }

# Readline puts a completion in the place of what is behind the last colon or =, not of the whole word.
_weir_trim() {
  local before=${word%"${word##*[:=]}"} i
  for ((i = 0; i < ${#COMPREPLY[@]}; i++)); do COMPREPLY[i]=${COMPREPLY[i]#"$before"}; done
}

_weir_run() {
  local program=$1 i
  # Behind -- or the first word that is no option comes another command: let it complete itself.
  i=2
  if [[ ${words[1]} == fabric || ${words[2]} =~ ^[0-9]+$ ]]; then i=3; fi
  for ((; i < ${#words[@]} - 1; i++)); do
    case ${words[i]} in
      --lib-dir | --devices | --name | --gid | --mtu | --host | --fabric | --faults | --fault | --log | --pcap | --qp | --snap | --limit | --from | --timeout) ((i++)) ;;
      --) ((i++)); break ;;
      -*) ;;
      *) break ;;
    esac
  done
  case $previous in
    --lib-dir) _weir_directories; return ;;
    --mtu) _weir_choose "256 512 1024 2048 4096"; return ;;
    --log | --pcap | --faults) _weir_files; return ;;
    --host) _weir_choose "$("$2" fabric list --json 2>/dev/null | sed -n 's/^    {"name": *"\([^"]*\)".*/\1/p')"; return ;;
    --fabric) _weir_fabrics "$2"; return ;;
  esac
  if ((i < ${#words[@]} - 1)); then
    if declare -F _command_offset >/dev/null; then _command_offset "${starts[i]}"; else _weir_files; fi
  elif [[ $word != -* || $previous == -- ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$word")
  elif [[ $program == seeds ]]; then
    _weir_choose "-- --from --timeout --weak --json --devices --name --gid --mtu --share-memory --no-process-vm --packets --carrier --spin
      --sockets --sockets-peers --rsockets --check --suppressions --lib-dir --help"
  elif [[ $program == trace ]]; then
    _weir_choose "-- --log --pcap --qp --snap --limit --devices --name --gid --mtu --share-memory --no-process-vm --packets --carrier --spin
      --host --fabric --faults --fault --sockets --sockets-peers --rsockets --check --weak --json --suppressions --lib-dir --help"
  else
    _weir_choose "-- --devices --name --gid --mtu --share-memory --no-process-vm --packets --carrier --spin --host --fabric --faults --fault --sockets --sockets-peers --rsockets
      --check --weak --json --suppressions --lib-dir --help"
  fi
}

_weir_fabrics() { _weir_choose "$("$1" fabric list 2>/dev/null | sed '1d; s/ .*//')"; }

_weir_fabric() {
  case $previous in
    --name | --hosts | --mtu | --fault | --seed | --interval | --count) return ;;
    --pcap) _weir_directories; return ;;
    --faults) _weir_files; return ;;
    --fabric) _weir_fabrics "$1"; return ;;
    fabric) if [[ $word != -* ]]; then _weir_choose "up run test ssh list ps top link down --help"; return; fi ;;
  esac
  if [[ $word == -* ]]; then
    _weir_choose "--name --hosts --flat --mtu --pcap --faults --fault --host --verify --report --stop-at --seed --seeds --fabric --interval --count --all --json --help"
  elif [[ ${words[2]} == up ]]; then
    _weir_files
  elif [[ ${words[2]} == link && $previous != link ]]; then
    _weir_choose "down up"
  elif [[ ${words[2]} == list || ${words[2]} == ps || ${words[2]} == top || ${words[2]} == down ]]; then
    _weir_fabrics "$1"
  fi
}

_weir_rpc() {
  case $previous in
    --attachment | --attachment-out | --cacert | --cert | --key | --token-file) _weir_files; return ;;
    --compress) _weir_choose "lz4 zstd"; return ;;
  esac
  if [[ $word == -* ]]; then
    _weir_choose "--timeout --attachment --attachment-out --cacert --cert --key --server-name --insecure --token
      --token-file --compress --names --json --prometheus --help"
  elif [[ $previous == rpc ]]; then
    _weir_choose "list call stats diff --help"
  elif [[ $previous == list || $previous == call || $previous == stats ]]; then
    _weir_choose "tcp:// unix:// tls:// rdma:// rdma+tls://"
    compopt -o nospace
  elif [[ ${words[2]} == diff ]]; then
    _weir_files
  elif [[ $word == @* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -P @ -- "${word#@}")
  elif [[ ${words[2]} == call ]] && ((${#words[@]} == 5)); then
    _weir_choose "$("$1" rpc list --names "${words[3]}" 2>/dev/null)"
  fi
}

_weir() {
  local words starts word previous
  local commands="run trace faults seeds fabric devices sockets stat plan sim collector rpc tensor completion"
  COMPREPLY=()
  _weir_words
  if ((${#words[@]} == 2)); then
    _weir_choose "$commands help version --help --version"
    return
  fi
  case ${words[1]} in
    run | trace | seeds) _weir_run "${words[1]}" "$1"; return ;;
    devices)
      case $previous in
        --lib-dir) _weir_directories ;;
        *) _weir_choose "--json --lib-dir --help" ;;
      esac
      ;;
    faults) if [[ $word == -* ]]; then _weir_choose "--json --help"; elif [[ $previous == faults ]]; then _weir_choose "check list"; else _weir_files; fi ;;
    fabric) if [[ ${words[2]} == run && ${#words[@]} -gt 3 ]]; then _weir_run run "$1"; else _weir_fabric "$1"; fi ;;
    sockets) _weir_choose "--off --json --help" ;;
    stat)
      case $previous in
        -s | --sort) _weir_choose "pid command ops send write read atomic recv served out in bell compl wake rnr retry
          error" ;;
        -p | --pid) _weir_choose "$(ps -u "$UID" -o pid=)" ;;
        --lib-dir) _weir_directories ;;
        *) _weir_choose "--once --interval --count --sort --pid --processes --json --prometheus --listen --lib-dir
          --help" ;;
      esac
      ;;
    plan)
      case $previous in
        -f | --format) _weir_choose "table json html" ;;
        --sonic | --diff) _weir_directories ;;
        --import | -o | --output) _weir_files ;;
        --speed | --cable | --model) ;;
        *) if [[ $word == -* ]]; then
          _weir_choose "--format --json --output --sonic --diff --import --speed --cable --model --strict --no-failures --models
            --help"
        else
          _weir_files
        fi ;;
      esac
      ;;
    sim)
      if [[ $previous == --set || $previous == --sweep ]]; then
        # buffer.alpha, and alpha alone
        mapfile -t COMPREPLY < <(compgen -S = -W "$("$1" sim --settings 2>/dev/null | sed -n 's/^\([a-z_]*\.\([a-z_]*\)\) .*/\1 \2/p')" \
          -- "$word")
        compopt -o nospace
      elif [[ $previous == -o || $previous == --output ]]; then
        _weir_directories
      elif [[ $word == -* ]]; then
        _weir_choose "--output --set --sweep --jobs --json --csv --telemetry --telemetry-queue --telemetry-wait --fail-on --quiet
          --settings --help"
      else
        _weir_files
      fi
      ;;
    collector)
      if [[ $word == -* ]]; then _weir_choose "--listen --metrics --output --help"; else _weir_files; fi ;;
    rpc) _weir_rpc "$1" ;;
    tensor)
      if [[ $previous == -o || $previous == --output || $previous == --cacert || $previous == --cert || $previous == --key ]]; then
        _weir_files
      elif [[ $word == -* ]]; then
        _weir_choose "--json --output --timeout --done --count --cacert --cert --key --server-name --help"
      elif [[ $previous == tensor ]]; then
        _weir_choose "ls get bench"
      else
        _weir_choose "rdma://"
      fi
      ;;
    completion) _weir_choose "bash zsh fish --help" ;;
    help) _weir_choose "$commands" ;;
  esac
  _weir_trim
}

_weir_program() {
  local words starts word previous options
  COMPREPLY=()
  _weir_words
  local server="-h -p -s -u -a --pass --user -2 -3 --rdma --rdma-provider --rdma-rx-size --tls --cacert --cacertdir --cert --key
    --sni --insecure --tls-ciphers --tls-ciphersuites --help --version"
  case $1 in
    *weir-cli) options="$server -n -r -i -x -X -e -c -d -D --quoted-input --raw --no-raw --csv --json --quoted-json
      --show-pushes --cluster --pipe --pipe-timeout --scan --pattern --quoted-pattern --count --bigkeys --memkeys --memkeys-samples
      --hotkeys --stat --latency --latency-history --latency-dist --intrinsic-latency --lru-test --rdb --functions-rdb --replica --eval --ldb
      --ldb-sync-mode --verbose --askpass --no-auth-warning" ;;
    *weir-benchmark) options="$server -c -n -P -d -r -k -t -q -l -I -x --csv --json --duration --rate --seed --keys-distribution --mix --threads
      --pin --dbnum --precision --compare --repeat --tls-port --rdma-port --rdma-tls-port --chart --cluster" ;;
    *weir-check) options="--fix --yes --json --help --version" ;;
    *) options="--port --bind --unixsocket --unixsocketperm --tls-port --tls-cert-file --tls-key-file --tls-ca-cert-file
      --tls-auth-clients --tls-handshake-timeout --auth-timeout --rdma-port --rdma-bind --rdma-rx-size --rdma-completion-vector
      --rdma-tls-port --rdma-provider --rdma-required --metrics-port --metrics-bind --idle-spin --protected-mode --requirepass --aclfile --maxclients --timeout
      --proto-max-bulk-len --databases --maxmemory --maxmemory-clients --maxmemory-policy --busy-reply-threshold --lua-memory-limit --server-cpulist --bio-cpulist --shutdown-timeout --logfile --loglevel --pidfile --dir --daemonize
      --save --dbfilename --stop-writes-on-bgsave-error --enable-protected-configs --appendonly --appendfsync --appendfilename --appenddirname
      --aof-load-truncated
      --repl-backlog-size --repl-backlog-ttl --repl-timeout --repl-ping-replica-period --min-replicas-to-write --min-replicas-max-lag
      --replicaof --masteruser --masterauth --tls-replication --rdma-replication --replica-read-only --replica-serve-stale-data
      --cluster-gateway --cluster-gateway-timeout --cluster-gateway-own-links --cluster-gateway-own-links-per-user --tls-cluster
      --check-config --help --version" ;;
  esac
  case $previous in
    --rdma-provider) _weir_choose "auto weir system" ;;
    --enable-protected-configs) _weir_choose "no yes local" ;;
    --show-pushes | --protected-mode | --stop-writes-on-bgsave-error | --tls-replication | --rdma-required | --rdma-replication | --replica-read-only | --replica-serve-stale-data | --tls-cluster | --daemonize | --appendonly | --aof-load-truncated) _weir_choose "yes no" ;;
    --tls-auth-clients) _weir_choose "yes no optional" ;;
    --appendfsync) _weir_choose "always everysec no" ;;
    --keys-distribution) _weir_choose "uniform zipf sequential" ;;
    --loglevel) _weir_choose "debug verbose notice warning" ;;
    --maxmemory-policy) _weir_choose "noeviction allkeys-lru allkeys-lfu allkeys-random volatile-lru volatile-lfu
      volatile-random volatile-ttl" ;;
    --cacert | --cert | --key | --chart | --unixsocket | --tls-*-file | --aclfile | --logfile | --pidfile) _weir_files ;;
    --cacertdir | --dir) _weir_directories ;;
    --compare) _weir_choose "tcp,unix,tls,rdma,rdma+tls" ;;
    *)
      if [[ $1 == *weir-server || $1 == *weir-check ]]; then
        if [[ $word == -* ]]; then _weir_choose "$options"; else _weir_files; fi
      elif [[ $1 == *weir-benchmark && $previous == -t ]]; then
        _weir_choose "ping ping_inline ping_mbulk set get incr lpush rpush lpop rpop sadd hset spop zadd zpopmin lrange
          lrange_100 lrange_300 lrange_500 lrange_600 mset xadd xread evalsha set,get"
      elif [[ $previous == -s || $1 == *weir-benchmark && $previous == --json ]]; then
        _weir_files
      else
        _weir_choose "$options"
      fi ;;
  esac
  _weir_trim
}

# weir-plan is `weir plan`.
_weir_subcommand() {
  local subcommand=${1##*/} weir=${1%/*}/weir
  subcommand=${subcommand#weir-}
  if [[ $1 != */* ]]; then weir=weir; fi
  COMP_LINE="$weir $subcommand${COMP_LINE#"$1"}"
  COMP_WORDS=("$weir" "$subcommand" "${COMP_WORDS[@]:1}")
  ((COMP_CWORD++))
  _weir "$weir"
}

complete -F _weir weir
complete -F _weir_subcommand weir-plan weir-sim weir-collector weir-rpc weir-tensor weir-fabric
complete -F _weir_program weir-cli weir-benchmark weir-server weir-check
