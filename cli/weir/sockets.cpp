// `weir sockets`: which TCP connections of this user's programs go by RDMA, and why the others do not.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

#include "cli/weir/command.hpp"
#include "sockets/listing.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir sockets

Lists the TCP connections of this user's programs that may change to RDMA, see weir-run(1), and looked for their peer: each
end with its program, what it sends and receives by, and why not by RDMA.

  --help         this text

Exit status: 0; 1 the table could not be read, or the list not be written; 2 the command line makes no sense.
)";

std::string carrier(const sockets::ListedEnd& end) {
  const auto name = [](bool rdma) { return rdma ? "rdma" : "tcp"; };
  return fmt::format("{}/{}", name(end.sends_by_rdma), name(end.receives_by_rdma));
}

}  // namespace

int sockets(std::span<const std::string> arguments) {
  for (const std::string& word : arguments) {
    if (word != "--help" && word != "-h")
      return complain("sockets", "unknown option: " + word + "; see weir sockets --help");
    std::fputs(help.data(), stdout);
    return 0;
  }
  const auto ends = sockets::list_ends(sockets::runtime_directory(std::getenv("WEIR_RUNTIME_DIR")));
  if (!ends) return complain("sockets", ends.error(), 1);
  std::string text = fmt::format("{:<24} {:<24} {:<24} {:<10} {:>14}  {}\n", "LOCAL", "PEER", "PROGRAM",
                                 "SENDS/GETS", "SENT BY RDMA", "WHY NOT");
  for (const auto& end : *ends)
    text +=
        fmt::format("{:<24} {:<24} {:<24} {:<10} {:>14}  {}\n", end.local, end.peer,
                    fmt::format("{}[{}]", end.program, end.pid), carrier(end), end.sent_by_rdma, end.why_not);
  return print_out("sockets", text, 0, 1);
}

}  // namespace weir::command
