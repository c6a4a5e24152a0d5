// A consumer group of a stream: how far its consumers have read together, and which entries each has got and
// not acknowledged.
//
// A pending entry is in the group's list, with whom it was given to, and in its consumer's. Threading: none.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kv/store/stream_id.hpp"

namespace weir::kv {

struct StreamConsumer {
  std::string name;
  std::int64_t seen_ms = 0;  // when it asked last
  absl::btree_set<StreamId> pending;
};

class StreamGroup {
 public:
  static constexpr std::int64_t unknown = -1;

  struct Pending {
    std::int64_t delivered_ms = 0;
    std::uint64_t deliveries = 0;
    StreamConsumer* consumer = nullptr;
  };
  using PendingEntries = absl::btree_map<StreamId, Pending>;
  using Consumers = absl::btree_map<std::string, std::unique_ptr<StreamConsumer>, std::less<>>;

  explicit StreamGroup(StreamId last, std::int64_t read) : last_id(last), entries_read(read) {}

  StreamId last_id;           // of the last entry that was given to anyone
  std::int64_t entries_read;  // how many of the stream's entries come up to there; or unknown

  const Consumers& consumers() const { return consumers_; }
  const PendingEntries& pending() const { return pending_; }

  StreamConsumer* find_consumer(std::string_view name) const {
    const auto it = consumers_.find(name);
    return it == consumers_.end() ? nullptr : it->second.get();
  }
  // The name must be new.
  StreamConsumer& add_consumer(std::string_view name, std::int64_t now_ms);
  // With all that is pending for it.
  void remove_consumer(std::string_view name);

  Pending* find(StreamId id) {
    const auto it = pending_.find(id);
    return it == pending_.end() ? nullptr : &it->second;
  }
  // It is `consumer`'s from now on, whoever had it; returned are its times and counts, zero if nobody had it.
  Pending& give(StreamId id, StreamConsumer& consumer);
  // False: it was not pending.
  bool take_back(StreamId id);

  std::unique_ptr<StreamGroup> copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most);

 private:
  Consumers consumers_;
  PendingEntries pending_;
};

}  // namespace weir::kv
