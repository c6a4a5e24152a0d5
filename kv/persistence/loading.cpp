#include "kv/persistence/loading.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kv/call/server_parts.hpp"
#include "kv/core/restored.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/rdb/file_reader.hpp"
#include "kv/rdb/file_source.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/text/number.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv {

namespace {

class StoreTarget final : public rdb::Target {
 public:
  StoreTarget(ServerParts& server, Expired expired, Existing existing, const std::function<bool()>& go_on)
      : server_(server),
        expired_(expired),
        existing_(existing),
        go_on_(go_on),
        bytes_before_(server.loading->bytes_done) {}

  void aux(std::string_view name, std::string_view value) override {
    if (name == "redis-ver")
      server_.log(LogLevel::notice, "the snapshot was written by version " + std::string(value));
    if (name == "repl-id") history_ = value;
    if (name == "repl-offset") position_ = parse_int(value).value_or(-1);
    if (name == "repl-stream-db") stream_database_ = parse_int(value).value_or(-1);
  }
  std::string select(std::uint64_t database) override {
    if (database >= server_.databases.size()) {
      return "it has a database " + std::to_string(database) + ", and here there are " +
             std::to_string(server_.databases.size()) + ": check --databases";
    }
    db_ = server_.databases[database].get();
    return {};
  }
  void sizes(std::uint64_t keys, std::uint64_t) override {
    // The file may announce what it does not have: the table's memory must stay in proportion to its bytes.
    constexpr std::uint64_t small_record = 16;
    db_->expect(std::min(keys, server_.loading->bytes_all / small_record));
  }
  void coming(std::string_view key) override { db_->prefetch(key); }
  std::string record(std::string_view key, Value value, const rdb::About& about) override {
    const bool is_past = about.expires_at_ms && *about.expires_at_ms <= server_.now_ms;
    if (is_past && expired_ == Expired::dropped && !has_place_in_history()) {
      ++server_.loaded.expired;
      return {};
    }
    if (db_->records().find(key) != nullptr) {
      if (existing_ == Existing::refused) return "it has the key '" + std::string(key) + "' twice";
      db_->erase(key);
    }
    Record& record = db_->insert(key, std::move(value));
    if (about.expires_at_ms) db_->set_expiry(record, *about.expires_at_ms);
    note_use(server_, record, about);
    ++server_.loaded.keys;
    return {};
  }
  std::string function(std::string_view text) override {
    const auto added = server_.scripts->add_library(text, existing_ == Existing::replaced);
    return added ? "" : "it has a library of functions that does not load: " + added.error();
  }
  bool go_on(std::uint64_t bytes_read) override {
    constexpr std::uint64_t bytes_at_once = 1 << 20;
    constexpr unsigned records_at_once = 2000;
    server_.loading->bytes_done = bytes_before_ + bytes_read;
    if (bytes_read < looked_at_ + bytes_at_once && ++records_ < records_at_once) return true;
    looked_at_ = bytes_read;
    records_ = 0;
    server_.refresh_time();
    report_.tell();
    return go_on_();
  }
  // Everything is loaded.
  void go_on_in_history() const {
    if (!has_place_in_history()) return;
    const auto databases = static_cast<std::int64_t>(server_.databases.size());
    const int database =
        stream_database_ < databases ? static_cast<int>(std::max<std::int64_t>(stream_database_, -1)) : -1;
    server_.restore_history({history_, position_, database});
  }

 private:
  // Replicas may have the same history, and expect a DEL of each key that expires from here on.
  bool has_place_in_history() const {
    return existing_ == Existing::refused && !server_.settings.appendonly && !server_.history.kept() &&
           history_.size() == repl::History::id_size && position_ >= 0;
  }

  ServerParts& server_;
  LoadingReport report_{server_};
  Expired expired_;
  Existing existing_;
  const std::function<bool()>& go_on_;
  std::uint64_t bytes_before_;
  Keyspace* db_ = server_.databases.front().get();
  std::uint64_t looked_at_ = 0;
  unsigned records_ = 0;
  // The data's position, and the history to which it belongs.
  std::string history_;
  std::int64_t position_ = -1;
  std::int64_t stream_database_ = -1;
};

}  // namespace

void LoadingReport::tell() {
  constexpr std::int64_t every_ms = 5000;
  const LoadProgress& progress = *server_.loading;
  if (reported_ms_ == 0) reported_ms_ = progress.began_ms;
  if (server_.steady_ms - reported_ms_ < every_ms || progress.bytes_all == 0) return;
  reported_ms_ = server_.steady_ms;
  server_.log(LogLevel::notice, "loading: " + std::to_string(progress.bytes_done * 100 / progress.bytes_all) +
                                    " %, " + std::to_string(server_.loaded.keys) + " keys");
}

std::expected<SnapshotRead, std::string> load_snapshot_file(ServerParts& server, int fd,
                                                            const std::string& path, Expired expired,
                                                            const std::function<bool()>& go_on,
                                                            Existing existing) {
  rdb::FileSource source(fd);
  StoreTarget target(server, expired, existing, go_on);
  const auto checked = server.settings.rdbchecksum ? rdb::Checked::yes : rdb::Checked::no;
  const auto done = rdb::read_file(source, restored_limits(server), checked, target);
  if (source.problem() != 0)
    return std::unexpected("cannot read " + path + ": " + std::strerror(source.problem()));
  if (!done && done.error().kind == rdb::Error::Kind::stopped) return SnapshotRead{LoadResult::stopped};
  if (!done) return std::unexpected(path + " is not loaded: " + done.error().what);
  target.go_on_in_history();
  return SnapshotRead{LoadResult::loaded, *done};
}

std::expected<LoadResult, std::string> load_snapshot(ServerParts& server, const std::function<bool()>& go_on,
                                                     Existing existing) {
  const std::string path = server.settings.dir + '/' + server.settings.dbfilename;
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return LoadResult::no_file;
  if (!file) return std::unexpected("cannot read " + path + ": " + std::strerror(errno));
  struct stat status{};
  ::fstat(file.get(), &status);
  server.refresh_time();
  server.loading = LoadProgress{server.steady_ms, static_cast<std::uint64_t>(status.st_size), 0};
  server.loaded = {};
  // The primary decides when keys of a replica expire.
  const Expired expired = server.settings.replicaof.empty() ? Expired::dropped : Expired::kept;
  auto read = load_snapshot_file(server, file.get(), path, expired, go_on, existing);
  server.refresh_time();
  const std::int64_t took_ms = server.steady_ms - server.loading->began_ms;
  server.loading.reset();
  if (!read) return std::unexpected(std::move(read.error()));
  if (read->result == LoadResult::stopped) return LoadResult::stopped;
  server.snapshots->loaded(status.st_mtim.tv_sec);
  server.log(LogLevel::notice, "loaded " + std::to_string(server.loaded.keys) + " keys from " + path +
                                   " in " + std::to_string(took_ms) + " ms; " +
                                   std::to_string(server.loaded.expired) + " had expired");
  return LoadResult::loaded;
}

}  // namespace weir::kv
