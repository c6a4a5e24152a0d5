// `weir sockets`: shows which TCP connections of this user's programs use RDMA, and why the others do not.
#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "cli/json_text.hpp"
#include "cli/weir/command.hpp"
#include "screen/terminal.hpp"
#include "sockets/listing.hpp"
#include "sockets/put_back.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {
namespace {

constexpr std::string_view help = R"(Usage: weir sockets [--json | --off PID]

Lists the TCP connections of this user's programs that may change to RDMA (see weir-run(1)) and have looked for their
peer: each end with its program, what it sends and receives over, and why it stays on TCP.

  --json         print JSON, for programs
  --off PID      return the connections of that process to TCP, including later ones, until it ends
  --help         this text

Exit status: 0; 1 the table could not be read, the list could not be written, or the process has no such connections;
2 the command line is invalid.
)";

std::string as_json(const std::vector<sockets::ListedEnd>& ends) {
  JsonText json;
  json.begin_array();
  for (const auto& end : ends) {
    json.line(2).begin_object().key("local").text(end.local).key("peer").text(end.peer);
    json.key("program").text(end.program).key("pid").number(end.pid);
    json.key("sends_by_rdma")
        .boolean(end.sends_by_rdma)
        .key("receives_by_rdma")
        .boolean(end.receives_by_rdma);
    json.key("bytes_sent_by_rdma").number(end.sent_by_rdma).key("why_not").text(end.why_not).end();
  }
  if (!ends.empty()) json.line(0);
  return json.end().take() + "\n";
}

std::string carrier(const sockets::ListedEnd& end) {
  const auto name = [](bool rdma) { return rdma ? "rdma" : "tcp"; };
  return fmt::format("{}/{}", name(end.sends_by_rdma), name(end.receives_by_rdma));
}

int off(std::string_view word) {
  std::uint32_t pid = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
  if (error != std::errc{} || end != word.data() + word.size() || pid == 0)
    return complain("sockets", "--off wants the number of a process, not '" + std::string(word) + "'");
  const auto done = sockets::put_back(sockets::runtime_directory(std::getenv("WEIR_RUNTIME_DIR")), pid);
  if (!done) return complain("sockets", done.error(), 1);
  return print_out("sockets",
                   fmt::format("{}[{}]: its connections, {} in the table, go back to TCP\n", done->program,
                               pid, done->connections),
                   0, 1);
}

}  // namespace

int sockets(std::span<const std::string> arguments) {
  bool json = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.starts_with("--off=") && arguments.size() == 1) return off(std::string_view(word).substr(6));
    if (word == "--off" && arguments.size() == 2 && i == 0) return off(arguments[1]);
    if (word == "--off")
      return complain("sockets", "--off wants the number of one process; see weir sockets --help");
    if (word == "--json") {
      json = true;
      continue;
    }
    if (word != "--help" && word != "-h")
      return complain("sockets", option_complaint(word, help) + "; see weir sockets --help");
    screen::print_wrapped(stdout, help);
    return 0;
  }
  const auto ends = sockets::list_ends(sockets::runtime_directory(std::getenv("WEIR_RUNTIME_DIR")));
  if (!ends) return complain("sockets", ends.error(), 1);
  if (json) return print_out("sockets", as_json(*ends), 0, 1);
  std::string text = fmt::format("{:<24} {:<24} {:<24} {:<10} {:>14}  {}\n", "LOCAL", "PEER", "PROGRAM",
                                 "SENDS/GETS", "SENT BY RDMA", "WHY NOT");
  for (const auto& end : *ends)
    text +=
        fmt::format("{:<24} {:<24} {:<24} {:<10} {:>14}  {}\n", end.local, end.peer,
                    fmt::format("{}[{}]", end.program, end.pid), carrier(end), end.sent_by_rdma, end.why_not);
  return print_out("sockets", text, 0, 1);
}

}  // namespace weir::command
