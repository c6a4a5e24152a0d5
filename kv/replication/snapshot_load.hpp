// Loads a primary's snapshot into separate databases, in turns with the server's other work.
//
// The snapshot is read beside the current data, which is served meanwhile. It replaces the old data, in one
// step, only when all of it is here and its checksum is right. So a primary that ends or sends wrong data in
// the middle does no harm; until then both data sets are in memory.
//
// The reader runs on its own stack. It is suspended where bytes are missing and at the end of a turn, even
// within one large value. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/rdb/reader.hpp"
#include "kv/scripts/own_stack.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {
class ServerParts;
}

namespace weir::kv::repl {

class SnapshotLoad {
 public:
  enum class Outcome : std::uint8_t { more, hungry, loaded, failed };
  // Puts up to `most` bytes of the snapshot at `into`; 0: there are none now.
  using Take = std::function<std::size_t(char* into, std::size_t most)>;

  SnapshotLoad(ServerParts& server, Take take);
  ~SnapshotLoad();
  SnapshotLoad(const SnapshotLoad&) = delete;
  SnapshotLoad& operator=(const SnapshotLoad&) = delete;

  // Continues for a short while. `ended`: no bytes will come beyond those that `take` has.
  Outcome take_turn(bool ended);
  const std::string& error() const { return error_; }

  // After Outcome::loaded: makes the snapshot the server's data. An error concerns functions or the log and
  // leaves the data unchanged.
  std::string put_in_place();

  // The database that the stream after the snapshot starts with; -1: the stream selects one.
  int stream_database() const { return stream_database_; }
  std::uint64_t keys() const { return keys_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  class Pulling;
  class Target;

  void read();
  bool turn_is_over() const;

  ServerParts& server_;
  Take take_;
  std::vector<std::unique_ptr<Keyspace>> databases_;
  std::vector<std::string> functions_;
  OwnStack stack_;
  std::uint64_t turn_began_ = 0;  // in cycles
  double turn_cycles_ = 0;
  bool begun_ = false;
  bool over_ = false;
  bool ended_ = false;   // no more bytes will come
  bool hungry_ = false;  // it waits for bytes
  bool abandoned_ = false;
  bool loaded_ = false;
  int stream_database_ = -1;
  std::uint64_t keys_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t memory_before_ = 0;
  std::string error_;
};

}  // namespace weir::kv::repl
