// client-output-buffer-limit: a client for which the server must keep more output than that is closed,
// and its output is dropped. maxmemory-clients: the largest clients are closed.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>

#include "kv/settings/settings.hpp"

namespace weir::kv {

class Client;
class ServerWhole;
struct ServerCommon;

class OutputLimits {
 public:
  OutputLimits(ServerCommon& server, ServerWhole& whole) : server_(server), whole_(whole) {}

  // Closes the client, and returns true, if more output waits for it than the limit ever allows.
  bool limit(Client& client);
  // Likewise, or for longer than the limit allows. Call after sending as much as possible.
  void limit_unread(Client& client);
  // Closes clients that have not read for too long.
  void close_slow_readers();
  // When the next client will exceed its soft limit for too long; 0: none is above it.
  std::int64_t next_deadline_ms() const { return due_ms_; }
  // Closes the largest clients until all together hold no more than they may.
  void close_largest();

 private:
  const OutputLimit& limit_of(const Client& client) const;
  void close(Client& client);

  ServerCommon& server_;
  ServerWhole& whole_;
  std::int64_t due_ms_ = 0;
};

}  // namespace weir::kv
