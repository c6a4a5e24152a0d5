// maxmemory-clients: how much memory all clients together may make the server hold. Beyond that the server
// closes the largest, except those that said CLIENT NO-EVICT (which count all the same, as in Redis).
//
// While there is a limit, each client reports changes of its memory when it has taken input and when output
// was sent; without one nothing is counted. Threading: the server's one thread.
#pragma once

#include <cstddef>

#include "kv/settings/settings.hpp"

namespace weir::kv {

class ClientBudget {
 public:
  bool counts() const { return most_ != 0; }
  // A client that held `before` bytes holds `now` bytes.
  void changed(std::size_t before, std::size_t now) { held_ += now - before; }
  bool exceeded() const { return counts() && held_ >= most_; }
  // True: counting begins or ends, so each client must be counted anew.
  bool take_limit(const Settings& settings);

 private:
  std::size_t most_ = 0;  // 0: no limit
  std::size_t held_ = 0;
};

}  // namespace weir::kv
