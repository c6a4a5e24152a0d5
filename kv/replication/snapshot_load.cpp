#include "kv/replication/snapshot_load.hpp"

#include <algorithm>

#include "kv/call/server_parts.hpp"
#include "kv/core/kept.hpp"
#include "kv/core/restored.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/rdb/file_reader.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::repl {

namespace {
constexpr double load_turn_us = 500;
}

// The source of bytes; the reader requests about 64 KiB at a time.
class SnapshotLoad::Pulling final : public rdb::Source {
 public:
  explicit Pulling(SnapshotLoad& load) : load_(load) {}
  std::size_t read(char* into, std::size_t most) override {
    if (load_.turn_is_over()) load_.stack_.suspend();
    while (!load_.abandoned_) {
      if (const std::size_t bytes = load_.take_(into, most); bytes > 0) {
        load_.bytes_ += bytes;
        return bytes;
      }
      if (load_.ended_) break;
      load_.hungry_ = true;
      load_.stack_.suspend();
    }
    return 0;
  }

 private:
  SnapshotLoad& load_;
};

class SnapshotLoad::Target final : public rdb::Target {
 public:
  explicit Target(SnapshotLoad& load) : load_(load), db_(load.databases_.front().get()) {}

  void aux(std::string_view name, std::string_view value) override {
    if (name != "repl-stream-db") return;
    const auto database = parse_int(value);
    const auto count = static_cast<std::int64_t>(load_.databases_.size());
    if (database && *database >= 0 && *database < count) load_.stream_database_ = static_cast<int>(*database);
  }
  std::string select(std::uint64_t database) override {
    if (database >= load_.databases_.size()) {
      return "it has a database " + std::to_string(database) + ", and here there are " +
             std::to_string(load_.databases_.size()) + ": check --databases";
    }
    db_ = load_.databases_[database].get();
    return {};
  }
  // How much will come is unknown, so only a table of modest size is made for what is announced.
  void sizes(std::uint64_t keys, std::uint64_t) override {
    db_->expect(std::min<std::uint64_t>(keys, 1 << 20));
  }
  void coming(std::string_view key) override { db_->prefetch(key); }
  std::string record(std::string_view key, Value value, const rdb::About& about) override {
    if (db_->records().find(key) != nullptr) return "it has the key '" + std::string(key) + "' twice";
    Record& record = db_->insert(key, std::move(value));
    // Even if that time is past: the primary decides when the key goes.
    if (about.expires_at_ms) db_->set_expiry(record, *about.expires_at_ms);
    note_use(load_.server_, record, about);
    ++load_.keys_;
    return {};
  }
  std::string function(std::string_view text) override {
    load_.functions_.emplace_back(text);
    return {};
  }
  bool go_on(std::uint64_t) override {
    if (load_.turn_is_over()) load_.stack_.suspend();
    return !load_.abandoned_ && fits();
  }
  bool does_not_fit() const { return does_not_fit_; }

 private:
  // A primary must not send more than this server may hold.
  bool fits() {
    const std::int64_t most = load_.server_.settings.maxmemory;
    const std::size_t now = used_memory();
    const std::size_t added = now > load_.memory_before_ ? now - load_.memory_before_ : 0;
    does_not_fit_ = most > 0 && added > static_cast<std::size_t>(most);
    return !does_not_fit_;
  }

  SnapshotLoad& load_;
  Keyspace* db_;
  bool does_not_fit_ = false;
};

SnapshotLoad::SnapshotLoad(ServerParts& server, Take take)
    : server_(server), take_(std::move(take)), memory_before_(used_memory()) {
  for (const auto& db : server.databases)
    databases_.push_back(std::make_unique<Keyspace>(db->index(), server.use_clock, server.lazy_free));
}

SnapshotLoad::~SnapshotLoad() {
  abandoned_ = true;
  while (stack_.suspended()) stack_.resume();
  for (const auto& db : databases_) db->clear();
}

bool SnapshotLoad::turn_is_over() const {
  return static_cast<double>(cycles_now() - turn_began_) > turn_cycles_;
}

void SnapshotLoad::read() {
  Pulling source(*this);
  Target target(*this);
  const auto checked = server_.settings.rdbchecksum ? rdb::Checked::yes : rdb::Checked::no;
  const auto done = rdb::read_file(source, restored_limits(server_), checked, target);
  loaded_ = done.has_value() && *done == bytes_;
  if (target.does_not_fit()) {
    error_ = "it does not fit into maxmemory";
  } else if (!done) {
    error_ = done.error().what;
  } else if (!loaded_) {
    error_ = "bytes follow behind its end";
  }
}

SnapshotLoad::Outcome SnapshotLoad::take_turn(bool ended) {
  if (over_) return loaded_ ? Outcome::loaded : Outcome::failed;
  ended_ = ended;
  hungry_ = false;
  turn_began_ = cycles_now();
  turn_cycles_ = load_turn_us * server_.cycle_rate.per_us();
  over_ = std::exchange(begun_, true) ? stack_.resume() : stack_.run([this] { read(); });
  if (!over_) return hungry_ ? Outcome::hungry : Outcome::more;
  return loaded_ ? Outcome::loaded : Outcome::failed;
}

std::string SnapshotLoad::put_in_place() {
  if (const auto begun = aof::begin_anew(*server_.append_only); !begun) return begun.error();
  if (const auto taken = server_.scripts->restore_libraries(functions_, Scripts::RestorePolicy::flush);
      !taken)
    return "it has a library of functions that does not load: " + taken.error();
  server_.snapshots->abandon();  // it is a snapshot of the old data
  for (std::size_t i = 0; i < databases_.size(); ++i) {
    Keyspace& db = *server_.databases[i];
    server_.watches.touch_all(db, databases_[i].get(), server_.now_ms);
    server_.effects.changed_all(db.size() + databases_[i]->size());
    db.swap(*databases_[i]);
    server_.blocking.signal_all(db);
  }
  if (server_.tracking.any()) server_.tracking.flushed();
  return {};
}

}  // namespace weir::kv::repl
