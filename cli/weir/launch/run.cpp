// `weir run`: runs any verbs program on the software NIC. It becomes the program (exec), with Weir's
// libraries before the system's; no parent process stays behind.
#include <cstdio>

#include "cli/weir/command.hpp"
#include "cli/weir/launch/launch.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir run [OPTIONS] [--] COMMAND [ARG...]

Runs COMMAND with Weir's libibverbs and librdmacm in place of the system's, so that it finds the software NIC weir0:
no RDMA hardware, no kernel module, no privileges. Start each of the programs that talk to each other this way.

  See the device:
    $ weir run -- ibv_devinfo
  Measure write latency between two processes:
    $ weir run -- ib_write_lat &
    $ weir run -- ib_write_lat localhost
  Ping over connection management:
    $ weir run -- rping -s -C 10 &
    $ weir run -- rping -c -a 127.0.0.1 -v -C 10

  Plain TCP programs over RDMA where both ends run so on this host, over TCP elsewhere:
    $ weir run --sockets -- redis-server --port 7000 &
    $ weir run --sockets -- redis-benchmark -p 7000

  Two devices, called as some programs expect them:
    $ weir run --devices 2 --name mlx5_0 -- ibv_devices

Options:
  --devices N    how many devices there are (default 1); all of them are the one software NIC
  --name NAME    the name of the first; the others count up from the number at its end (default weir0)
  --gid ADDRESS  an IP address that is a GID of each device; may be repeated (default: the addresses of the host)
  --mtu BYTES    the active MTU of the port, 256 to 4096 (default: what the interface of its first address carries):
                 what datagrams may carry, and the most that a connection may use
  --share-memory
                 the program's large allocations are shared memory from the start, so that RDMA to and from them
                 needs no system call; a forked child then shares them too, instead of having a copy
  --no-process-vm
                 as where the kernel refuses process_vm_readv and process_vm_writev (some containers): a thread
                 of the program that is written or read copies instead; for tests
  --sockets      the program's TCP connections change to RDMA, and back at any byte, where the peer runs so, too, as the
                 same user on this host; all others stay as they are. WEIR_SOCKETS=trace says what happens, =off nothing
                 =report sums it up at exit; WEIR_SOCKETS_RULES='off port 22, on program redis-*, off' leaves some out
  --sockets-peers NETWORK
                 with --sockets, also to these networks' hosts, where the peer names ours: 10.0.0.0/8 or fd00::/8; may
                 be repeated. For hosts that are trusted; between software NICs TCP is faster (docs/sockets.md)
  --rsockets     the program's internet sockets are rsockets, sockets over RDMA, through a preloaded librspreload.so
                 (rsocket(7)); both ends of a connection need it. Faster than --sockets with few connections; --sockets
                 is for all else: one end alone, fork, exec, dup, passed descriptors, every socket option
  --lib-dir DIR  where Weir's libibverbs.so.1 and librdmacm.so.1 are (default: found beside this program)
  --help         this text

Exit status: the command's own; 127 if it is not found, 126 if it cannot be run on the software NIC, 2 if the options
make no sense.
Sets LD_LIBRARY_PATH; LD_PRELOAD, so that a DT_RPATH, another LD_LIBRARY_PATH or a dlopen by path finds Weir's
libraries too, to show the files about RDMA devices in /sys and /dev that programs read beside verbs, and for
--share-memory, --sockets and --rsockets; WEIR_DEVICES, WEIR_GIDS, WEIR_MTU and WEIR_NO_PROCESS_VM from the
options above; and WEIR_RDMA_PROVIDER=weir for Weir's own programs.
)";

}  // namespace

int run(std::span<const std::string> arguments) {
  Launch launch;
  const auto options = launch.options();
  const auto command = read_launch_options("run", arguments, options, help);
  if (!command) return command.error();
  if (launch.help) {
    std::fputs(help.data(), stdout);
    return 0;
  }
  launch.command = *command;
  return become("run", launch);
}

}  // namespace weir::command
