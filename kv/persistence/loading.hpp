// Reads a snapshot into the server's databases at the start.
//
// Loading takes time, so the caller is asked regularly whether to continue. Meanwhile it may serve clients,
// which are told that the server is loading.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

namespace weir::kv {

class ServerParts;

// Logs the progress every few seconds.
class LoadingReport {
 public:
  explicit LoadingReport(ServerParts& server) : server_(server) {}
  void tell();

 private:
  ServerParts& server_;
  std::int64_t reported_ms_ = 0;
};

enum class LoadResult : std::uint8_t { loaded, no_file, stopped };

// Expired keys: left out, or read as well, because the requests that follow the
// snapshot say when they go.
enum class Expired : std::uint8_t { dropped, kept };

// What to do with keys and libraries that exist already.
enum class Existing : std::uint8_t { refused, replaced };

struct SnapshotRead {
  LoadResult result = LoadResult::loaded;
  std::uint64_t bytes = 0;  // size within the file, which may hold more
};

// Reads from the current position of an open file. The server is `loading`, and
// its progress is updated.
std::expected<SnapshotRead, std::string> load_snapshot_file(ServerParts& server, int fd,
                                                            const std::string& path, Expired expired,
                                                            const std::function<bool()>& go_on,
                                                            Existing existing = Existing::refused);

// Reads the file that the settings name. `go_on` is called every few milliseconds; returning false stops. The
// error tells an administrator what is wrong; what was read until then stays.
std::expected<LoadResult, std::string> load_snapshot(ServerParts& server, const std::function<bool()>& go_on,
                                                     Existing existing = Existing::refused);

}  // namespace weir::kv
