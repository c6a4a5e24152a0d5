// A client that follows this server as a replica, or has announced that it will.
#pragma once

#include <cstdint>
#include <string>

namespace weir::kv::repl {

struct Replica {
  // In order: it has announced itself; it waits for a snapshot to begin; it is being sent one; it has all of
  // it and loads it; it is being sent the stream.
  enum class Stage : std::uint8_t { announced, waits, receives, loads, online };

  Stage stage = Stage::announced;
  // As reported with REPLCONF.
  std::uint16_t port = 0;
  std::string address;                // empty: the source address of its connection
  bool takes_end_mark = false;        // "capa eof": a snapshot of unknown length
  bool knows_renaming = false;        // "capa psync2"
  bool wants_only_data = false;       // a snapshot without the stream: redis-cli --rdb
  bool wants_only_functions = false;  // of the snapshot: redis-cli --functions-rdb
  bool reads_valkey = false;  // "version 9.0.0" or later: it reads Valkey's snapshots, and not Redis 7.4's
  bool asked_the_old_way = false;  // SYNC: no line names the history

  std::int64_t position = 0;      // how much of the history it was given
  std::int64_t acknowledged = 0;  // how much of it it has applied
  std::int64_t synced = -1;       // how much of it is on its disk; -1: it does not say
  std::int64_t heard_ms = 0;      // when it last acknowledged or took bytes
  std::int64_t acknowledged_ms = 0;
  std::int64_t over_soft_limit_since_ms = 0;  // 0: not over the limit
  std::uint64_t given = 0;                    // bytes added to its queue, including the snapshot
  std::uint64_t taken = 0;                    // how many of these it had taken at the last check

  // Replicas of one form can be sent the same snapshot.
  bool same_form(const Replica& other) const {
    return takes_end_mark == other.takes_end_mark && reads_valkey == other.reads_valkey &&
           wants_only_functions == other.wants_only_functions;
  }
  bool follows() const { return stage != Stage::announced; }
};

}  // namespace weir::kv::repl
