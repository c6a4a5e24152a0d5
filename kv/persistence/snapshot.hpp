// The bytes of a snapshot, except for its end: all databases and functions at the moment it begins.
//
// They come in chunks, in the order of the file. The owner calls step() regularly. Data that is about to
// change meanwhile is encoded before it changes.
//
// Threading: the server's one thread.
#pragma once

#include <functional>
#include <optional>

#include "kv/counting/cycles.hpp"
#include "kv/rdb/encoded.hpp"
#include "kv/rdb/format.hpp"
#include "kv/store/snapshot_walk.hpp"

namespace weir::kv {

class Effects;
class FunctionLibraries;
struct ServerCommon;

// What a snapshot is taken of.
struct SnapshotSource {
  ServerCommon& server;
  const Effects& effects;
  const FunctionLibraries& libraries;
};

class Snapshot {
 public:
  using Sink = std::function<void(rdb::Encoded chunk)>;

  // The purpose, which the header states. functions: it has no databases.
  enum class Use : std::uint8_t { file, append_only_base, replica, functions };

  Snapshot(SnapshotSource source, std::uint32_t number, Use use, Sink sink,
           std::optional<rdb::Dialect> of_replica = std::nullopt);

  // Encodes a few more records, or none while rdb-key-save-delay keeps it waiting; returns false once the
  // sink has everything.
  bool step();

  // Memory that is in use only because of the snapshot: what is encoded and has not gone to the sink, and the
  // records of emptied databases (about so many bytes).
  std::size_t memory() const { return chunk_.memory() + walk_.records_left() * bytes_a_key_; }
  std::uint64_t keys_done() const { return keys_done_; }
  std::uint64_t keys_at_first() const { return keys_at_first_; }

 private:
  static constexpr std::size_t chunk_size = 256 * 1024;

  void begin();
  bool rests() const;
  void put(int database, const Record& record);
  void hand_over();

  SnapshotSource source_;
  Use use_;
  Sink sink_;
  rdb::Dialect dialect_;
  rdb::Encoded chunk_;
  int database_ = -1;  // the last one selected
  std::uint64_t keys_done_ = 0;
  std::uint64_t keys_at_first_ = 0;
  std::size_t bytes_a_key_ = 0;  // on average, at first
  std::uint64_t began_cycles_ = cycles_now();
  SnapshotWalk walk_;
};

}  // namespace weir::kv
