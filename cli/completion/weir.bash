# Completion for weir, weir-cli, weir-benchmark and weir-server.
_weir() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "run trace devices stat plan sim collector rpc completion --help --version" -- "$word")
    return
  fi
  case ${COMP_WORDS[1]} in
    run | trace)
      # Behind -- or the first word that is no option comes another command: let it complete itself.
      for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
          --lib-dir | --devices | --name | --gid | --mtu | --log | --pcap | --qp | --snap | --limit) ((i++)) ;;
          --) ((i++)); break ;;
          -*) ;;
          *) break ;;
        esac
      done
      if [[ $previous == --lib-dir ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
      elif [[ $previous == --mtu ]]; then
        mapfile -t COMPREPLY < <(compgen -W "256 512 1024 2048 4096" -- "$word")
      elif [[ $previous == --log || $previous == --pcap ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      elif ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
        _command_offset "$i"
      elif [[ $word == -* && ${COMP_WORDS[1]} == trace ]]; then
        mapfile -t COMPREPLY < <(compgen -W "-- --log --pcap --qp --snap --limit --devices --name --gid --mtu --share-memory --no-process-vm
          --lib-dir --help" -- "$word")
      elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "-- --devices --name --gid --mtu --share-memory --no-process-vm --lib-dir
          --help" -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      fi
      ;;
    devices) mapfile -t COMPREPLY < <(compgen -W "--json --lib-dir --help" -- "$word") ;;
    stat)
      case $previous in
        -s | --sort) mapfile -t COMPREPLY < <(compgen -W "pid command ops send write read atomic recv served out in bell
          compl wake rnr retry error" -- "$word") ;;
        -p | --pid) mapfile -t COMPREPLY < <(compgen -W "$(ps -u "$UID" -o pid=)" -- "$word") ;;
        --lib-dir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "--once --interval --count --sort --pid --processes --json --prometheus
          --listen --lib-dir --help" -- "$word") ;;
      esac
      ;;
    plan)
      case $previous in
        -f | --format) mapfile -t COMPREPLY < <(compgen -W "table json html" -- "$word") ;;
        --sonic) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        -o | --output) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        *) if [[ $word == -* ]]; then
          mapfile -t COMPREPLY < <(compgen -W "--format --output --sonic --strict --no-failures --models --help" -- "$word")
        else
          mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi ;;
      esac
      ;;
    sim)
      if [[ $previous == --set || $previous == --sweep ]]; then
        mapfile -t COMPREPLY < <(compgen -S = -W "$(weir sim --settings 2>/dev/null | cut -d' ' -f1)" -- "$word")
        compopt -o nospace
      elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--output --set --sweep --jobs --json --csv --telemetry --telemetry-queue --telemetry-wait --quiet --settings --help" -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
    collector)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--listen --metrics --output --help" -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
    rpc)
      case $previous in
        --attachment | --attachment-out | --cacert | --cert | --key | --token-file)
          mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        --compress) mapfile -t COMPREPLY < <(compgen -W "lz4 zstd" -- "$word") ;;
        rpc) mapfile -t COMPREPLY < <(compgen -W "list call stats --help" -- "$word") ;;
        list | call | stats) mapfile -t COMPREPLY < <(compgen -W "tcp:// unix:// tls:// rdma:// rdma+tls://" -- "$word") ;;
        *)
          if [[ $word == @* ]]; then
            mapfile -t COMPREPLY < <(compgen -f -P @ -- "${word#@}")
          elif ((COMP_CWORD == 4)) && [[ ${COMP_WORDS[2]} == call ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(weir rpc list --names "${COMP_WORDS[3]}" 2>/dev/null)" -- "$word")
          else
            mapfile -t COMPREPLY < <(compgen -W "--timeout --attachment --attachment-out --cacert --cert --key --server-name
              --insecure --token --token-file --compress --names --json --prometheus --help" -- "$word")
          fi ;;
      esac
      ;;
    completion) mapfile -t COMPREPLY < <(compgen -W "bash zsh fish" -- "$word") ;;
  esac
}

_weir_program() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options
  COMPREPLY=()
  local server="-h -p -s -u -a --pass --user -2 -3 --rdma --tls --cacert --cacertdir --cert --key --sni --insecure"
  case $1 in
    *weir-cli) options="$server -r -i -n -x -e -c -d --raw --no-raw --csv --json --pipe --scan --pattern --count
      --quoted-pattern --bigkeys --stat --latency --askpass --help --version" ;;
    *weir-benchmark) options="$server -c -n -P -d -r -k -t -q -l -I -x --csv --json --duration --seed --threads --pin --dbnum
      --precision --compare --repeat --tls-port --rdma-port --tls-rdma-port --chart --help --version" ;;
    *) options="--port --bind --unixsocket --tls-port --tls-cert-file --tls-key-file --tls-ca-cert-file --rdma-port
      --rdma-bind --rdma-rx-size --rdma-comp-vector --requirepass --maxclients --maxmemory --help --version" ;;
  esac
  case $previous in
    -s | --cacert | --cert | --key | --chart | --unixsocket | --tls-*-file)
      mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --cacertdir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --compare) mapfile -t COMPREPLY < <(compgen -W "tcp,unix,tls,rdma,tls+rdma" -- "$word") ;;
    -t) mapfile -t COMPREPLY < <(compgen -W "ping set get incr lpush rpush lpop rpop sadd hset spop zadd zpopmin
      lrange mset set,get" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
  esac
}

complete -F _weir weir
complete -F _weir_program weir-cli weir-benchmark weir-server
