// --rdb, --functions-rdb and --replica: the server as a primary. Its stream begins with a snapshot, behind
// whose end it sends its replicas' requests.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "cli/client/standard_output.hpp"
#include "cli/shell/tasks.hpp"
#include "kv/replication/snapshot_frame.hpp"

namespace weir::shell {
namespace {

using client::ErrorKind;
using client::Result;
using kv::repl::SnapshotFrame;

// Takes a piece of the snapshot; an error ends the transfer.
using Sink = std::function<Result<void>(std::string_view)>;

Result<void> announce(client::Session& session, std::initializer_list<std::string_view> words) {
  const std::vector<std::string> request(words.begin(), words.end());
  const auto reply = session.ask(request);
  if (!reply) return std::unexpected(reply.error());
  if (reply->is_error())
    return client::fail(ErrorKind::refused, fmt::format("{} {}: {}", request[0], request[1], reply->text));
  return {};
}

// Returns what arrived behind the snapshot's end.
Result<std::string> receive_snapshot(client::Session& session, const Sink& sink) {
  session.stop_parsing();
  const std::vector<std::string> request{"SYNC"};
  if (auto sent = session.send(request); !sent) return std::unexpected(sent.error());
  SnapshotFrame frame;
  std::string waiting;
  bool announced = false;
  for (;;) {
    std::size_t done = 0;
    while (!frame.ended()) {
      const std::string_view rest = std::string_view(waiting).substr(done);
      // The frame knows no refusals: it expects a server that has agreed.
      if (!announced && rest.starts_with('-') && rest.ends_with('\n'))
        return client::fail(ErrorKind::refused, fmt::format("SYNC with master failed: {}",
                                                            rest.substr(0, rest.find_first_of("\r\n"))));
      const SnapshotFrame::Taken taken = frame.take(rest);
      if (frame.failed() && !rest.starts_with('-'))
        return client::fail(ErrorKind::protocol, "the server's answer to SYNC is no snapshot");
      done += taken.bytes;
      if (auto written = sink(taken.content); !written) return std::unexpected(written.error());
      announced |= taken.bytes > 1;
      if (taken.bytes == 0) break;
    }
    waiting.erase(0, done);
    if (frame.ended()) return waiting;
    auto more = session.next_bytes();
    if (!more) return std::unexpected(more.error());
    waiting += *more;
  }
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return client::fail(ErrorKind::usage,
                          std::string("Error writing data to file: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

int save_snapshot(client::Session& session, const Options& options) {
  const bool to_stdout = options.snapshot.file == "-";
  if (auto done = announce(session, {"REPLCONF", "capa", "eof"}); !done) return failed(done.error());
  // Servers before Redis 7 do not know it, and send requests behind the snapshot, which are ignored.
  if (auto done = announce(session, {"REPLCONF", "rdb-only", "1"});
      !done && done.error().kind != ErrorKind::refused)
    return failed(done.error());
  if (options.snapshot.only_functions)
    if (auto done = announce(session, {"REPLCONF", "rdb-filter-only", "functions"}); !done)
      return failed(done.error());
  // Not before the server has agreed to send one: a file of that name may be the only good one.
  const int fd = to_stdout
                     ? STDOUT_FILENO
                     : ::open(options.snapshot.file.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0)
    return failed({ErrorKind::usage,
                   fmt::format("Error opening '{}': {}", options.snapshot.file, std::strerror(errno))});
  std::uint64_t bytes = 0;
  const auto rest = receive_snapshot(session, [&](std::string_view piece) {
    bytes += piece.size();
    return write_all(fd, piece);
  });
  int status = rest ? 0 : failed(rest.error());
  if (!to_stdout && status == 0 && ::fsync(fd) != 0)
    status = failed({ErrorKind::usage, std::string("Fail to fsync: ") + std::strerror(errno)});
  if (!to_stdout) ::close(fd);
  if (status == 0) fmt::print(stderr, "Transfer finished with success after {} bytes\n", bytes);
  return status;
}

int follow_server(client::Session& session, const Options& options) {
  // Without an end mark the snapshot's length is known before it begins, as redis-cli asks for it.
  std::uint64_t bytes = 0;
  const auto rest = receive_snapshot(session, [&](std::string_view piece) -> Result<void> {
    bytes += piece.size();
    return {};
  });
  if (!rest) return failed(rest.error());
  fmt::print(
      stderr,
      "SYNC with master, {} bytes of bulk transfer discarded\nSYNC done. Logging commands from master.\n",
      bytes);
  if (auto fed = session.parse_again(*rest); !fed) return failed(fed.error());
  for (;;) {
    const auto request = session.next();
    if (!request) return failed(request.error());
    const auto text = reply_text(*request, Output::csv, options.delimiters);
    std::fwrite(text.data(), 1, text.size(), stdout);
    client::flush_output();
  }
}

}  // namespace weir::shell
