// Memory that maxmemory does not count, because evicting keys cannot free it: each key that goes before a
// snapshot has come to it is encoded first, so for the same key about as much memory is taken as is freed. It
// is free again when the disk or the replicas have what is in it. Each part bounds its own.
//
// As in Redis, the history that is kept for replicas that come back (repl-backlog-size) does count.
#pragma once

#include <cstddef>

namespace weir::kv {

struct UncountedMemory {
  std::size_t snapshot = 0;     // BGSAVE's
  std::size_t log_rewrite = 0;  // its snapshot
  std::size_t log = 0;          // effects that are not written yet
  std::size_t replicas = 0;

  std::size_t all() const { return snapshot + log_rewrite + log + replicas; }
};

}  // namespace weir::kv
