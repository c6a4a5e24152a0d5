#include "kv/aof/loading_log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "kv/aof/log_files.hpp"
#include "kv/aof/place_note.hpp"
#include "kv/aof/replay.hpp"
#include "kv/call/server_parts.hpp"
#include "kv/replication/replication.hpp"
#include "kv/store/nothing_expires.hpp"

namespace weir::kv::aof {

namespace {

bool begins_with_snapshot(const OwnedFd& file) {
  std::array<char, 6> begin{};
  const ssize_t n = ::pread(file.get(), begin.data(), begin.size(), 0);
  const std::string_view bytes(begin.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
  return bytes.starts_with("REDIS") || bytes.starts_with("VALKEY");
}

class Loading {
 public:
  using Result = std::expected<LoadResult, std::string>;

  Loading(ServerParts& server, const Folder& folder, const std::function<bool()>& go_on)
      : server_(server), folder_(folder), go_on_(go_on), nothing_expires_(server.databases) {}

  Result load(const LogFile& log_file, bool last) {
    auto file = folder_.open_to_read(log_file.name);
    if (!file) return std::unexpected(std::move(file.error()));
    const std::uint64_t before = server_.loading->bytes_done;
    std::uint64_t behind_snapshot = 0;
    if (begins_with_snapshot(*file)) {
      const auto read = load_snapshot_file(server_, file->get(), folder_.path() + '/' + log_file.name,
                                           Expired::kept, go_on_);
      if (!read) return std::unexpected(read.error());
      if (read->result == LoadResult::stopped) return read->result;
      behind_snapshot = read->bytes;
      ::lseek(file->get(), static_cast<off_t>(behind_snapshot), SEEK_SET);
    }
    auto result = replay(log_file, *file, before, behind_snapshot, last);
    server_.loading->bytes_done = before + folder_.size(log_file.name);
    return result;
  }

  std::uint64_t requests() const { return requests_; }
  // The last line of the log, if it is a note.
  const std::string& note() const { return note_; }

 private:
  Result replay(const LogFile& log_file, const OwnedFd& file, std::uint64_t before, std::uint64_t offset,
                bool last) {
    int problem = 0;
    Replay replay(server_, [&](char* place, std::size_t most) -> std::size_t {
      ssize_t n = 0;
      do {
        n = ::read(file.get(), place, most);
      } while (n < 0 && errno == EINTR);
      if (n < 0) problem = errno;
      return n < 0 ? 0 : static_cast<std::size_t>(n);
    });
    Replay::Outcome outcome{};
    while ((outcome = replay.run()) == Replay::Outcome::more) {
      server_.loading->bytes_done = before + offset + replay.bytes_read();
      server_.refresh_time();
      report_.tell();
      if (!go_on_()) return LoadResult::stopped;
    }
    requests_ += replay.requests();
    if (replay.requests() != 0 || !replay.note().empty()) note_ = replay.note();
    if (problem != 0) return std::unexpected("cannot read " + log_file.name + ": " + std::strerror(problem));
    if (outcome == Replay::Outcome::end) return LoadResult::loaded;
    if (outcome == Replay::Outcome::failed) return std::unexpected(log_file.name + ": " + replay.error());
    return cut(log_file, offset + replay.whole_bytes(), last);
  }

  Result cut(const LogFile& log_file, std::uint64_t whole, bool last) {
    if (!last)
      return std::unexpected(log_file.name +
                             ": it ends in the middle of a request, and it is not the last file");
    if (!server_.settings.aof_load_truncated) {
      return std::unexpected(log_file.name + ": it ends in the middle of a request, after byte " +
                             std::to_string(whole) +
                             ". Set --aof-load-truncated yes to do without that request.");
    }
    server_.log(LogLevel::warning, "the log " + log_file.name + " ends in the middle of a request: cut to " +
                                       std::to_string(whole) + " bytes");
    if (auto done = folder_.cut(log_file.name, whole); !done) return std::unexpected(std::move(done.error()));
    return LoadResult::loaded;
  }

  ServerParts& server_;
  const Folder& folder_;
  const std::function<bool()>& go_on_;
  NothingExpires nothing_expires_;
  LoadingReport report_{server_};
  std::uint64_t requests_ = 0;
  std::string note_;
};

// The server ended as planned, and replicas that have everything can go on from there.
void go_on_in_history(ServerParts& server, std::string_view note) {
  const auto place = read_place_note(note);
  if (!place || server.replication->history().kept()) return;
  if (place->database >= static_cast<int>(server.databases.size())) return;
  server.replication->restore_history(*place);
}

std::expected<LoadResult, std::string> load_all(ServerParts& server, const LogFiles& files,
                                                const std::function<bool()>& go_on) {
  const Manifest& manifest = files.manifest();
  Loading loading(server, files.folder(), go_on);
  std::vector<LogFile> all = manifest.increments;
  if (manifest.base) all.insert(all.begin(), *manifest.base);
  for (auto file = all.begin(); file != all.end(); ++file) {
    const bool last = std::all_of(file + 1, all.end(),
                                  [&](const LogFile& later) { return files.folder().size(later.name) == 0; });
    auto loaded = loading.load(*file, last);
    if (!loaded || *loaded == LoadResult::stopped) return loaded;
  }
  server.refresh_time();
  go_on_in_history(server, loading.note());
  server.log(LogLevel::notice, "loaded the log: " + std::to_string(server.loaded.keys) + " keys and " +
                                   std::to_string(loading.requests()) + " requests in " +
                                   std::to_string(server.steady_ms - server.loading->began_ms) + " ms");
  return LoadResult::loaded;
}

}  // namespace

std::expected<LoadResult, std::string> load_log(ServerParts& server, LogFiles& files,
                                                const std::function<bool()>& go_on) {
  server.refresh_time();
  std::uint64_t size = files.size_of_closed();
  if (!files.manifest().increments.empty())
    size += files.folder().size(files.manifest().increments.back().name);
  server.loading = LoadProgress{server.steady_ms, size, 0};
  server.loaded = {};
  auto result = load_all(server, files, go_on);
  server.loading.reset();
  if (result && *result == LoadResult::loaded) files.remove_history();
  return result;
}

}  // namespace weir::kv::aof
