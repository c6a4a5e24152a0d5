// Where the server's memory goes: the figures of MEMORY and INFO.
#pragma once

#include <utility>

#include "kv/call/server_parts.hpp"
#include "kv/clients/client.hpp"
#include "kv/core/memory.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

// The allocator's figures come from the heap's count and from the kernel: resident memory that is not in
// use counts as fragmentation.
struct MemoryFigures {
  std::size_t used = used_memory();
  std::size_t resident = resident_memory();
  std::size_t peak, at_start;
  std::size_t clients = 0, replicas = 0;  // what is held for each, of both kinds
  std::size_t history;                    // for replicas
  UncountedMemory uncounted;
  std::size_t scripts, script_texts;
  std::size_t tables = 0;  // of keys and of expiring keys
  std::size_t keys = 0;

  explicit MemoryFigures(const ServerParts& server)
      : peak(server.heap_marks.peak()),
        at_start(server.heap_marks.at_start),
        history(server.history.memory()),
        uncounted(server.uncounted_memory()),
        scripts(server.scripts->memory()),
        script_texts(server.scripts->cache().text_bytes()) {
    for (const auto& [id, client] : server.clients)
      (client->is_replica() ? replicas : clients) += client->memory();
    for (const auto& db : server.databases) {
      tables += main_table(*db) + expiry_table(*db);
      keys += db->size();
    }
  }

  static std::size_t main_table(Keyspace& db) { return db.records().bucket_bytes(); }
  static std::size_t expiry_table(const Keyspace& db) {
    return db.volatile_size() * sizeof(std::pair<std::int64_t, Record*>);
  }
  std::size_t overhead() const {
    return at_start + clients + replicas + history + pending() + scripts + script_texts + tables;
  }
  // What waits for the disk.
  std::size_t pending() const { return uncounted.snapshot + uncounted.log_rewrite + uncounted.log; }
  std::size_t data() const { return used > overhead() ? used - overhead() : 0; }
  double ratio() const { return static_cast<double>(resident) / static_cast<double>(used); }
  std::int64_t unused() const {
    return static_cast<std::int64_t>(resident) - static_cast<std::int64_t>(used);
  }
};

}  // namespace weir::kv
