// A client that follows this server as a replica, or has said that it will.
#pragma once

#include <cstdint>
#include <string>

namespace weir::kv::repl {

struct Replica {
  // In that order: it has only said what it is; waits for a snapshot to begin; is sent one; has all of it and
  // loads it; is sent the stream.
  enum class Stage : std::uint8_t { announced, waits, receives, loads, online };

  Stage stage = Stage::announced;
  // What REPLCONF said.
  std::uint16_t port = 0;
  std::string address;             // empty: where it comes from
  bool takes_end_mark = false;     // "capa eof": a snapshot whose length nobody knows before
  bool knows_renaming = false;     // "capa psync2"
  bool wants_only_data = false;    // the snapshot and no stream: redis-cli --rdb
  bool asked_the_old_way = false;  // SYNC: no line says which history it is

  std::int64_t position = 0;      // of the history: so far it was given
  std::int64_t acknowledged = 0;  // so far it has applied it
  std::int64_t heard_ms = 0;      // when it last acknowledged or took something
  std::int64_t acknowledged_ms = 0;
  std::int64_t over_soft_limit_since_ms = 0;  // 0: it is not
  std::uint64_t given = 0;                    // bytes that joined its queue, the snapshot's included
  std::uint64_t taken = 0;                    // of these it has taken so many when last looked at

  bool follows() const { return stage != Stage::announced; }
};

}  // namespace weir::kv::repl
