#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

struct Seen {
  std::uint64_t replies = 0;
  std::uint64_t errors = 0;
  bool mark_came_back = false;
};

void note(const client::Reply& reply, const std::string& mark, Seen& seen) {
  if (reply.type == client::ReplyType::string && reply.text == mark) {
    seen.mark_came_back = true;
    return;
  }
  ++seen.replies;
  if (!reply.is_error()) return;
  ++seen.errors;
  fmt::print(stderr, "{}\n", reply.text);
}

// Reads what has arrived, so that unread replies never block the server.
client::Result<void> drain(client::Session& session, client::Milliseconds limit, const std::string& mark,
                           Seen& seen) {
  auto reply = session.poll(limit);
  for (; reply && *reply; reply = session.poll(client::Milliseconds{0})) note(**reply, mark, seen);
  if (!reply) return std::unexpected(std::move(reply.error()));
  return {};
}

// An ECHO of a unique text: its reply shows that everything before it was answered.
std::string make_mark() {
  std::random_device random;
  std::string mark = "weir-cli-end-";
  for (int i = 0; i < 4; ++i) mark += fmt::format("{:08x}", random());
  return mark;
}

}  // namespace

int pipe_standard_input(client::Session& session, const Options& options) {
  const auto mark = make_mark();
  Seen seen;
  std::array<char, 64 * 1024> block;
  for (;;) {
    const auto got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return failed({client::ErrorKind::usage, std::string("standard input: ") + std::strerror(errno)});
    if (got == 0) break;
    if (auto sent = session.send_bytes({block.data(), static_cast<std::size_t>(got)}); !sent)
      return failed(sent.error());
    if (auto drained = drain(session, client::Milliseconds{0}, mark, seen); !drained)
      return failed(drained.error());
  }
  const std::vector<std::string> echo{"ECHO", mark};
  if (auto sent = session.send(echo); !sent) return failed(sent.error());
  fmt::print("All data transferred. Waiting for the last reply...\n");
  std::fflush(stdout);
  const auto patience = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(options.pipe_timeout_s));
  auto last_sign = std::chrono::steady_clock::now();
  while (!seen.mark_came_back) {
    const auto before = seen.replies;
    if (auto drained = drain(session, client::Milliseconds{500}, mark, seen); !drained)
      return failed(drained.error());
    if (seen.replies != before) last_sign = std::chrono::steady_clock::now();
    if (options.pipe_timeout_s > 0 && std::chrono::steady_clock::now() - last_sign > patience)
      return failed({client::ErrorKind::timed_out,
                     fmt::format("No replies for {} seconds: exiting.", options.pipe_timeout_s)});
  }
  fmt::print("Last reply received from server.\nerrors: {}, replies: {}\n", seen.errors, seen.replies);
  return seen.errors ? 1 : 0;
}

}  // namespace weir::shell
