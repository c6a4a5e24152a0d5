# Completion for weir, weir-cli, weir-benchmark and weir-server.
complete -c weir -f -n __fish_use_subcommand -a run -d 'run a verbs program on the software NIC'
complete -c weir -f -n __fish_use_subcommand -a devices -d 'list RDMA devices'
complete -c weir -f -n __fish_use_subcommand -a trace -d 'run one and write down its work'
complete -c weir -f -n __fish_use_subcommand -a stat -d 'watch what the software NIC does'
complete -c weir -f -n __fish_use_subcommand -a plan -d 'plan a lossless network'
complete -c weir -f -n __fish_use_subcommand -a completion -d 'print shell completion'
complete -c weir -n '__fish_seen_subcommand_from run trace' -l devices -x -d 'how many devices'
complete -c weir -n '__fish_seen_subcommand_from run trace' -l name -x -d 'name of the first device'
complete -c weir -n '__fish_seen_subcommand_from run trace' -l mtu -x -a '256 512 1024 2048 4096' -d 'MTU of the port'
complete -c weir -n '__fish_seen_subcommand_from run trace' -l gid -x -d 'an address that is a GID'
complete -c weir -n '__fish_seen_subcommand_from run trace devices' -l lib-dir -r -d 'where the libraries are'
complete -c weir -f -n '__fish_seen_subcommand_from devices' -l json -d 'for programs'
complete -c weir -n '__fish_seen_subcommand_from trace' -l log -r -d 'where the lines go'
complete -c weir -n '__fish_seen_subcommand_from trace' -l pcap -r -d 'write packets there'
complete -c weir -n '__fish_seen_subcommand_from trace' -l qp -x -d 'only this queue pair'
complete -c weir -n '__fish_seen_subcommand_from trace' -l snap -x -d 'bytes kept of a packet'
complete -c weir -n '__fish_seen_subcommand_from trace' -l limit -x -d 'size of each file'
complete -c weir -f -n '__fish_seen_subcommand_from stat' -s 1 -l once -d 'show sums and end'
complete -c weir -f -n '__fish_seen_subcommand_from stat' -s j -l json -d 'for programs'
complete -c weir -f -n '__fish_seen_subcommand_from stat' -s P -l processes -d 'no queue pairs'
complete -c weir -f -n '__fish_seen_subcommand_from stat' -l prometheus -d 'its text format'
complete -c weir -x -n '__fish_seen_subcommand_from stat' -s i -l interval -d 'seconds between looks'
complete -c weir -x -n '__fish_seen_subcommand_from stat' -s n -l count -d 'refreshes'
complete -c weir -x -n '__fish_seen_subcommand_from stat' -s p -l pid -a '(__fish_complete_pids)' -d 'only these'
complete -c weir -x -n '__fish_seen_subcommand_from stat' -l listen -d 'host:port to serve /metrics at'
complete -c weir -x -n '__fish_seen_subcommand_from stat' -s s -l sort -d 'column' \
    -a 'pid command ops send write read atomic recv served out in bell compl wake rnr retry error'
complete -c weir -x -n '__fish_seen_subcommand_from plan' -s f -l format -a 'table json html' -d 'of the report'
complete -c weir -n '__fish_seen_subcommand_from plan' -s o -l output -r -d 'write the report there'
complete -c weir -n '__fish_seen_subcommand_from plan' -l sonic -r -d 'write config_db.json files there'
complete -c weir -f -n '__fish_seen_subcommand_from plan' -l strict -d 'exit with 1 on warnings'
complete -c weir -f -n '__fish_seen_subcommand_from plan' -l no-failures -d 'no failed links'
complete -c weir -f -n '__fish_seen_subcommand_from plan' -l models -d 'list switch models'
complete -c weir -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
complete -c weir -n '__fish_seen_subcommand_from run trace' -xa '(__fish_complete_subcommand --fcs-skip=2)'

for program in weir-cli weir-benchmark
    complete -c $program -s h -x -d host
    complete -c $program -s p -x -d port
    complete -c $program -s s -r -d 'unix socket'
    complete -c $program -s u -x -d 'server URI'
    complete -c $program -s a -x -d password
    complete -c $program -l user -x -d 'user name'
    complete -c $program -l rdma -d 'connect over RDMA'
    complete -c $program -l tls -d 'connect with TLS'
    complete -c $program -l cacert -r -d 'authority to trust'
    complete -c $program -l cert -r -d 'own certificate'
    complete -c $program -l key -r -d 'its private key'
    complete -c $program -l insecure -d 'do not check the certificate'
end
complete -c weir-cli -l raw -d 'raw output'
complete -c weir-cli -l csv -d 'CSV output'
complete -c weir-cli -l json -d 'JSON output'
complete -c weir-cli -l pipe -d 'send standard input as it is'
complete -c weir-cli -l scan -d 'list all keys'
complete -c weir-cli -l latency -d 'measure round trips'
complete -c weir-benchmark -s c -x -d connections
complete -c weir-benchmark -s n -x -d requests
complete -c weir-benchmark -s P -x -d pipeline
complete -c weir-benchmark -s t -x -a 'ping set get incr lpush rpush lpop rpop sadd hset spop zadd zpopmin lrange mset' -d tests
complete -c weir-benchmark -l compare -x -a 'tcp,unix,tls,rdma,tls+rdma' -d 'compare transports'
complete -c weir-benchmark -l chart -r -d 'draw the comparison'
