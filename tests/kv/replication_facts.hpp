// What replicating servers report about themselves.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {

// Waits until that many replicas have everything done until now.
inline void await_replicas(WireClient& primary, const std::string& count = "1") {
  for (int i = 0; i < 100; ++i) {
    if (primary.call({"WAIT", count, "1000"}) == ':' + count + "\r\n") return;
  }
  FAIL() << "no replica confirmed: " << primary.call({"INFO", "replication"});
}

inline std::string fact(WireClient& client, const std::string& section, const std::string& name) {
  const std::string all = client.call({"INFO", section});
  const std::size_t at = all.find("\r\n" + name + ':') + name.size() + 3;
  return all.substr(at, all.find("\r\n", at) - at);
}

// Waits until the replica has applied as much.
inline void await_offset(WireClient& replica, const std::string& offset) {
  while (std::stoll(fact(replica, "replication", "master_repl_offset")) < std::stoll(offset) ||
         fact(replica, "replication", "master_link_status") != "up") {
    std::this_thread::yield();
  }
}

}  // namespace weir::kv::testing
