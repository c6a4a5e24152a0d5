// Reading a snapshot into the server's databases at the start.
//
// Loading takes time, so the caller is asked now and then whether to continue, and may serve clients
// meanwhile; they are told that the server is loading.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

namespace weir::kv {

class Server;

// How far it is, for INFO.
struct LoadProgress {
  std::int64_t began_ms = 0;
  std::uint64_t bytes_all = 0;
  std::uint64_t bytes_done = 0;
};
// Logs every few seconds how far loading is.
class LoadingReport {
 public:
  explicit LoadingReport(Server& server) : server_(server) {}
  void tell();

 private:
  Server& server_;
  std::int64_t told_ms_ = 0;
};
// What the last one came to.
struct Loaded {
  std::uint64_t keys = 0;
  std::uint64_t expired = 0;  // were left out
};

enum class LoadResult : std::uint8_t { loaded, no_file, stopped };

// Keys that have expired: left out, or read all the same, because what follows the snapshot says when they
// went.
enum class Expired : std::uint8_t { dropped, kept };

struct SnapshotRead {
  LoadResult result = LoadResult::loaded;
  std::uint64_t bytes = 0;  // that the snapshot takes in the file; others may follow
};

// What is in an open file, from where it stands. The server is `loading`, and what is said of its progress
// moves on.
std::expected<SnapshotRead, std::string> load_snapshot_file(Server& server, int fd, const std::string& path,
                                                            Expired expired,
                                                            const std::function<bool()>& go_on);

// The file that the settings name. `go_on` is called every few milliseconds; false stops. The error says what
// is wrong with the file, for an administrator; what was read until then stays.
std::expected<LoadResult, std::string> load_snapshot(Server& server, const std::function<bool()>& go_on);

}  // namespace weir::kv
