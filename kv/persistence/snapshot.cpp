#include "kv/persistence/snapshot.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kv/core/restored.hpp"
#include "kv/core/server_common.hpp"
#include "kv/effects/effects.hpp"
#include "kv/rdb/value_encoder.hpp"
#include "kv/scripts/functions.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

namespace {

void put_place_in_history(const SnapshotSource& source, Snapshot::Use use, rdb::Encoded& into) {
  const repl::History& history = source.server.history;
  // A server that starts from this file and follows a primary continues from this position.
  const bool of_file = use == Snapshot::Use::file && history.kept() && !source.effects.untold();
  // A replica of a replica joins within a stream, where no request selects the database for it.
  const bool of_stream = use == Snapshot::Use::replica && history.of_primary;
  if (of_file || of_stream) into.put_aux("repl-stream-db", std::to_string(std::max(history.database, 0)));
  if (!of_file) return;
  into.put_aux("repl-id", history.id());
  into.put_aux("repl-offset", std::to_string(history.end()));
}

}  // namespace

Snapshot::Snapshot(SnapshotSource source, std::uint32_t number, Use use, Sink sink,
                   std::optional<rdb::Dialect> of_replica)
    : source_(source),
      use_(use),
      sink_(std::move(sink)),
      dialect_(of_replica.value_or(source.server.settings.dialect())),
      walk_(number, source.server.databases, source.server.changes_data, source.server.lazy_free,
            [this](int database, const Record& record) { put(database, record); }) {
  begin();
}

void Snapshot::begin() {
  // Older versions of Redis refuse a whole file rather than fail in its midst.
  const bool field_times = std::ranges::any_of(source_.server.databases,
                                               [](const auto& db) { return db->hashes_with_times() != 0; });
  if (field_times && dialect_ == rdb::Dialect::valkey) {
    rdb::put_header_of_valkey(chunk_);
  } else {
    rdb::put_header(chunk_, field_times ? rdb::version_with_field_times : rdb::version_written);
  }
  chunk_.put_aux("redis-ver", WEIR_REDIS_VERSION);
  chunk_.put_aux("redis-bits", "64");
  chunk_.put_aux("ctime", std::to_string(source_.server.now_ms / 1000));
  chunk_.put_aux("used-mem", std::to_string(used_memory()));
  chunk_.put_aux("aof-base", use_ == Use::append_only_base ? "1" : "0");
  put_place_in_history(source_, use_, chunk_);
  for (const auto& [name, library] : source_.libraries.all()) {
    chunk_.put_opcode(rdb::Opcode::function);
    chunk_.put_text(library.text);
  }
  if (use_ == Use::functions) return;
  for (const auto& db : source_.server.databases) {
    if (db->size() == 0) continue;
    chunk_.put_opcode(rdb::Opcode::database);
    chunk_.put_length(static_cast<std::uint64_t>(db->index()));
    chunk_.put_opcode(rdb::Opcode::sizes);
    chunk_.put_length(db->size());
    chunk_.put_length(db->volatile_size());
    database_ = db->index();
    keys_at_first_ += db->size();
  }
  if (keys_at_first_ == 0) return;
  const std::size_t used = used_memory();
  bytes_a_key_ = (used - std::min(used, source_.server.heap_marks.at_start)) / keys_at_first_;
}

void Snapshot::put(int database, const Record& record) {
  if (use_ == Use::functions) return;
  ++keys_done_;
  if (database != database_) {
    database_ = database;
    chunk_.put_opcode(rdb::Opcode::database);
    chunk_.put_length(static_cast<std::uint64_t>(database));
  }
  const rdb::About about = about_record(source_.server, record);
  if (about.expires_at_ms) {
    chunk_.put_opcode(rdb::Opcode::expires_at_ms);
    chunk_.put_milliseconds(*about.expires_at_ms);
  }
  if (about.idle_s) {
    chunk_.put_opcode(rdb::Opcode::idle_s);
    chunk_.put_length(*about.idle_s);
  }
  if (about.frequency) {
    chunk_.put_opcode(rdb::Opcode::frequency);
    chunk_.put_byte(*about.frequency);
  }
  chunk_.put_type(rdb::type_of(record.value, dialect_));
  chunk_.put_text(record.key());
  rdb::put_value(chunk_, record.value, dialect_);
  if (chunk_.size() >= chunk_size) hand_over();
}

void Snapshot::hand_over() {
  sink_(std::exchange(chunk_, {}));
  chunk_.reserve(chunk_size + chunk_size / 8);
}

// A means of tests: it makes snapshots of a few keys last.
bool Snapshot::rests() const {
  const std::int64_t delay_us = source_.server.settings.rdb_key_save_delay_us;
  if (delay_us <= 0) return false;
  const double passed_us =
      static_cast<double>(cycles_now() - began_cycles_) / source_.server.cycle_rate.per_us();
  return keys_done_ < keys_at_first_ &&
         passed_us < static_cast<double>(keys_done_) * static_cast<double>(delay_us);
}

bool Snapshot::step() {
  if (rests()) return true;
  if (use_ != Use::functions && walk_.step()) return true;
  if (!chunk_.empty()) hand_over();
  return false;
}

}  // namespace weir::kv
