// `weir run`: runs any verbs program on the software NIC. It becomes the program (exec), with Weir's
// libraries before the system's; no parent process stays behind.
#include <cstdio>

#include "cli/weir/command.hpp"
#include "cli/weir/launch/launch.hpp"
#include "screen/terminal.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir run [OPTIONS] [--] COMMAND [ARG...]

Runs COMMAND with Weir's libibverbs and librdmacm in place of the system's, so that it finds the software NIC weir0:
no RDMA hardware, no kernel module, no privileges. Start each of the programs that talk to each other this way.

  See the device:
    $ weir run -- ibv_devinfo
  Measure write latency between two processes:
    $ weir run -- ib_write_lat & sleep 1
    $ weir run -- ib_write_lat localhost
  Ping over connection management:
    $ weir run -- rping -s -C 10 & sleep 1
    $ weir run -- rping -c -a 127.0.0.1 -v -C 10

  Plain TCP programs, over RDMA if both ends run this way on this host, else over TCP:
    $ weir run --sockets -- redis-server --port 7200 --save '' & sleep 1
    $ weir run --sockets -- redis-benchmark -p 7200

  What would go to another host, on this one, at its own address:
    $ weir run --packets -- ib_write_bw & sleep 1
    $ weir run --packets -- ib_write_bw 192.0.2.7

  Lose a packet on purpose; at the end it says what fired (weir faults list, docs/faults.md):
    $ weir run --packets -- ib_send_bw & sleep 1
    $ weir run --fault 'drop qp=1 psn=5' -- ib_send_bw 192.0.2.7

  What the program does wrong, as AddressSanitizer reports it: what, where, why, and how to repair it:
    $ weir run --check -- ./my_program
  On a NIC that does whatever devices may do and usually do not (weir seeds tries many seeds):
    $ weir run --weak -- ./my_program

  Two devices, with names that some programs expect:
    $ weir run --devices 2 --name mlx5_0 -- ibv_devices

Options:
  --devices N    number of devices (default 1); all of them are the same software NIC
  --name NAME    name of the first device; the others count up from the number at its end (default weir0)
  --gid ADDRESS  an IP address that is a GID of each device; may be repeated (default: the addresses of the host)
  --mtu BYTES    active MTU of the port, 256 to 4096 (default: what the interface of its first address carries): the
                 limit for datagrams, and the largest path MTU that a connection may use
  --share-memory
                 make the program's large allocations shared memory from the start, so that RDMA to and from them
                 needs no system call; a forked child then shares them instead of getting a copy
  --no-process-vm
                 do without process_vm_readv and process_vm_writev, as where the kernel refuses them (some
                 containers): a thread of the target program copies instead; for tests
  --packets      send RoCEv2 packets (UDP port 4791) to this host's own addresses, too, instead of using shared memory:
                 to try and to watch (tcpdump -i lo udp port 4791) on one host what goes between two. Both ends need
                 it. 127.0.0.1 and ::1 stay with shared memory
  --carrier udp|tcp|auto
                 what carries packets to other hosts: UDP port 4791 (default), TCP port 4791 (or tcp:PORT), where UDP
                 does not pass, or auto: UDP, and TCP for each path on which packets go unanswered, also in the middle
                 of a transfer. Both ends need tcp or auto, and one of them must be reachable (docs/verbs.md)
  --spin US      before a thread sleeps for completions, in epoll_wait, poll, select or ibv_get_cq_event, it looks for
                 them for so long, at most (0: never). Default: 50, while a core is idle and as long as it pays
  --sockets      change the program's TCP connections to RDMA, and back at any byte, if the peer runs this way, too, as
                 the same user on this host; all others stay TCP. WEIR_SOCKETS=trace reports each change, =report
                 a summary at exit, =off changes none; WEIR_SOCKETS_RULES='off port 22, on program redis-*, off' selects
  --sockets-peers NETWORK
                 with --sockets, also change connections to hosts of this network, if the peer names ours: 10.0.0.0/8
                 or fd00::/8; may be repeated. For trusted hosts; between software NICs TCP is faster (docs/sockets.md)
  --faults FILE  make the packets of this program go wrong on purpose: lost, late, doubled, corrupted; one fault a line.
                 Implies --packets. Also calls that are refused, a port that is down; weir faults list shows all. A
                 summary on standard error at exit says which faults fired, and on which packet
  --fault FAULT  one such fault, like 'drop qp=1 psn=5' or 'delay 80us opcode=ack rate=1%'; may be repeated
  --host HOST    run it in this host of a network that `weir fabric up` made (weir fabric --help)
  --fabric NAME  which of these networks, if there are several
  --rsockets     turn the program's internet sockets into rsockets, sockets over RDMA, with a preloaded librspreload.so
                 (rsocket(7)); both ends of a connection need it. Faster than --sockets with few connections; --sockets
                 also supports one end alone, fork, exec, dup, passed descriptors and every socket option
  --check[=WORDS]
                 check what the program asks of the NIC: refused accesses, posts and transitions explained, missing
                 fences, memory freed in flight, missed events, full queues, leaks (docs/check.md). Errors make the exit
                 status 66 if it would be 0. WORDS: strict, risks do so, too; stop, SIGTRAP at the first error, for gdb
  --weak[=SEED,WORDS]
                 a NIC that does whatever devices may do: late, out of order, in parts, by choices that follow from SEED
                 (default: drawn; said at exit). WORDS: -lines without that weakness, +datagram-loss with that one, too,
                 delay,lines these only; weir seeds --help lists them (docs/check.md)
  --json FILE    with --check, append each finding to FILE as a line of JSON; with --faults or --fault, a line for each
                 program that says which faults fired and which never did
  --suppressions FILE
                 with --check, say nothing about findings that FILE has a line for: RULE:FUNCTION or RULE:FILE, with *
  --lib-dir DIR  where Weir's libibverbs.so.1 and librdmacm.so.1 are (default: found beside this program)
  --help         this text

Exit status: the command's own; 127 if it is not found, 126 if it cannot be run on the software NIC, 125 if there is
no such host, 2 if the options are invalid.
Sets these variables: LD_LIBRARY_PATH; LD_PRELOAD, so that a DT_RPATH, another LD_LIBRARY_PATH or a dlopen by path
finds Weir's libraries too, to show the files about RDMA devices in /sys and /dev that programs read besides verbs,
and for --share-memory, --sockets, --rsockets and --check; WEIR_DEVICES, WEIR_GIDS, WEIR_MTU, WEIR_NO_PROCESS_VM,
WEIR_PACKETS, WEIR_CARRIER, WEIR_SPIN, WEIR_FAULTS, WEIR_FAULT, WEIR_FAULTS_JSON, WEIR_CHECK* and WEIR_WEAK from the
options above; ASAN_OPTIONS, so that programs built with AddressSanitizer start; and WEIR_RDMA_PROVIDER=weir for
Weir's own programs.
)";

}  // namespace

int run_program(std::string_view subcommand, std::span<const std::string> arguments, Place place) {
  Launch launch;
  const auto options = launch.options();
  const auto command = read_launch_options(subcommand, arguments, options, help);
  if (!command) return command.error();
  if (launch.help) {
    screen::print_wrapped(stdout, help);
    return 0;
  }
  launch.command = *command;
  if (place == Place::in_a_host && launch.host.empty())
    return complain(subcommand, "it wants --host HOST; weir fabric list NAME shows the hosts");
  return become(subcommand, launch);
}

int run(std::span<const std::string> arguments) { return run_program("run", arguments, Place::anywhere); }

}  // namespace weir::command
