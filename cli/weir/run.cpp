// `weir run`: any verbs program on the software NIC. It becomes the program (exec), with Weir's libraries in
// front of the system's; nothing stays behind.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cli/weir/command.hpp"
#include "cli/weir/drop_in_libraries.hpp"
#include "cli/weir/program_file.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir run [--lib-dir DIR] [--] COMMAND [ARG...]

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

Options:
  --lib-dir DIR  where Weir's libibverbs.so.1 and librdmacm.so.1 are (default: found beside this program)
  --help         this text

Exit status: the command's own; 127 if it is not found, 126 if it cannot be run on the software NIC.
Sets LD_LIBRARY_PATH, and WEIR_RDMA_PROVIDER=weir for Weir's own programs.
)";

struct Request {
  std::string library_directory;
  std::span<const std::string> command;
  bool help = false;
};

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
    } else if (option.starts_with("--lib-dir=")) {
      request.library_directory = option.substr(std::strlen("--lib-dir="));
    } else if (option == "--lib-dir" && next + 1 < arguments.size()) {
      request.library_directory = arguments[++next];
    } else {
      return std::unexpected(
          complain("run", "unknown option or missing value: " + option + "; see weir run --help"));
    }
  }
  request.command = arguments.subspan(next);
  return request;
}

std::string with_directory_in_front(const std::string& directory, const char* before) {
  return before && *before ? directory + ":" + before : directory;
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
  const auto libraries = find_drop_in_libraries(request->library_directory);
  if (!libraries) return complain("run", libraries.error(), 126);
  const auto program = find_program(request->command.front(), std::getenv("PATH"));
  if (!program) return complain("run", program.error().what, program.error().status);
  if (const auto why = why_libraries_cannot_be_replaced(*program); !why.empty())
    return complain("run", why, 126);

  ::setenv("LD_LIBRARY_PATH", with_directory_in_front(*libraries, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
  ::setenv("WEIR_RDMA_PROVIDER", "weir", 1);
  std::vector<char*> words;
  for (const auto& word : request->command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(request->command.front().c_str(), words.data());
  return complain("run", request->command.front() + ": " + std::strerror(errno), errno == ENOENT ? 127 : 126);
}

}  // namespace weir::command
