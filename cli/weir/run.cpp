// `weir run`: any verbs program on the software NIC. It becomes the program (exec), with Weir's libraries in
// front of the system's; nothing stays behind.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cli/weir/command.hpp"
#include "cli/weir/device_names.hpp"
#include "cli/weir/drop_in_libraries.hpp"
#include "cli/weir/program_file.hpp"

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

  Two devices, called as some programs expect them:
    $ weir run --devices 2 --name mlx5_0 -- ibv_devices

Options:
  --devices N    how many devices there are (default 1); all of them are the one software NIC
  --name NAME    the name of the first; the others count up from the number at its end (default weir0)
  --gid ADDRESS  an IP address that is a GID of each device; may be repeated (default: the addresses of the host)
  --share-memory the program's large allocations are shared memory from the start, so that RDMA to and from them
                 needs no system call; a forked child then shares them too, instead of having a copy
  --no-process-vm  as where the kernel refuses process_vm_readv and process_vm_writev (some containers): a thread
                 of the program that is written or read copies instead; for tests
  --lib-dir DIR  where Weir's libibverbs.so.1 and librdmacm.so.1 are (default: found beside this program)
  --help         this text

Exit status: the command's own; 127 if it is not found, 126 if it cannot be run on the software NIC.
Sets LD_LIBRARY_PATH; LD_PRELOAD, to show the files about RDMA devices in /sys and /dev that programs read beside
verbs; WEIR_DEVICES, WEIR_GIDS and WEIR_NO_PROCESS_VM from the options above; and WEIR_RDMA_PROVIDER=weir for Weir's own programs.
)";

struct Request {
  std::string library_directory;
  std::string devices = "1", name = "weir0", gids;
  std::span<const std::string> command;
  bool help = false, share_memory = false, no_process_vm = false;
};

// Where the value of an option goes; nullptr: there is no such option.
std::string* value_of(Request& request, std::string_view option) {
  if (option == "--lib-dir") return &request.library_directory;
  if (option == "--devices") return &request.devices;
  if (option == "--name") return &request.name;
  if (option == "--gid") return &request.gids;
  return nullptr;
}

// The options in front of the command; the status to exit with if they make no sense.
std::expected<Request, int> read_options(std::span<const std::string> arguments) {
  Request request;
  std::size_t next = 0;
  for (; next < arguments.size() && arguments[next].starts_with('-'); ++next) {
    const auto& option = arguments[next];
    if (option == "--") {
      ++next;
      break;
    }
    if (option == "--help" || option == "-h") {
      request.help = true;
      continue;
    }
    if (option == "--share-memory") {
      request.share_memory = true;
      continue;
    }
    if (option == "--no-process-vm") {
      request.no_process_vm = true;
      continue;
    }
    const auto equals = option.find('=');
    std::string* const value = value_of(request, std::string_view(option).substr(0, equals));
    const bool behind = equals == std::string::npos;
    if (value == nullptr || (behind && next + 1 == arguments.size()))
      return std::unexpected(
          complain("run", "unknown option or missing value: " + option + "; see weir run --help"));
    const std::string given = behind ? arguments[++next] : option.substr(equals + 1);
    *value = value == &request.gids && !value->empty() ? *value + "," + given : given;
  }
  request.command = arguments.subspan(next);
  return request;
}

std::string in_front(const std::string& what, const char* before) {
  return before && *before ? what + ":" + before : what;
}

// What the program and all it starts inherit.
void set_environment(const Request& request, const std::string& libraries, const std::string& names) {
  ::setenv("LD_LIBRARY_PATH", in_front(libraries, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
  ::setenv("WEIR_RDMA_PROVIDER", "weir", 1);
  ::setenv("WEIR_DEVICES", names.c_str(), 1);
  if (!request.gids.empty()) ::setenv("WEIR_GIDS", request.gids.c_str(), 1);
  if (request.no_process_vm) ::setenv("WEIR_NO_PROCESS_VM", "1", 1);
  const auto preload = [&](const char* name) {
    const std::string library = libraries + name;
    if (::access(library.c_str(), R_OK) == 0)
      ::setenv("LD_PRELOAD", in_front(library, std::getenv("LD_PRELOAD")).c_str(), 1);
  };
  preload("/libweir_view.so");
  if (request.share_memory) preload("/libweir_heap.so");
}

}  // namespace

int run(std::span<const std::string> arguments) {
  const auto request = read_options(arguments);
  if (!request) return request.error();
  if (request->help) {
    std::fputs(help.data(), stdout);
    return 0;
  }
  if (request->command.empty())
    return complain("run", "no command given; for example: weir run -- ibv_devinfo");
  const auto names = device_names(request->name, request->devices);
  if (!names) return complain("run", names.error());
  const auto libraries = find_drop_in_libraries(request->library_directory);
  if (!libraries) return complain("run", libraries.error(), 126);
  const auto program = find_program(request->command.front(), std::getenv("PATH"));
  if (!program) return complain("run", program.error().what, program.error().status);
  if (const auto why = why_libraries_cannot_be_replaced(*program); !why.empty())
    return complain("run", why, 126);

  set_environment(*request, *libraries, *names);
  std::vector<char*> words;
  for (const auto& word : request->command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(request->command.front().c_str(), words.data());
  return complain("run", request->command.front() + ": " + std::strerror(errno), errno == ENOENT ? 127 : 126);
}

}  // namespace weir::command
