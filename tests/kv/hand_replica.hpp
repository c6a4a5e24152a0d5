// A replica that a test plays by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {

inline const std::vector<std::string> asks_for_confirmation{"REPLCONF", "GETACK", "*"};

// A client that speaks a replica's part of the protocol.
class HandReplica {
 public:
  explicit HandReplica(RunningServer& server) : wire(server.connect()) {
    EXPECT_EQ(wire.call({"REPLCONF", "listening-port", "7", "capa", "eof", "capa", "psync2"}), "+OK\r\n");
  }
  // Which says that it listens at that path.
  HandReplica(RunningServer& server, const std::string& path) : HandReplica(server) {
    EXPECT_EQ(wire.call({"REPLCONF", "listening-port", "0", "ip-address", path}), "+OK\r\n");
  }
  // The answer, without its line end.
  std::string psync(const std::string& known, const std::string& from) {
    wire.send(encode({"PSYNC", known, from}));
    const std::string line = wire.through("\r\n");
    return line.substr(0, line.size() - 2);
  }
  // Replicates from nothing, up to the first confirmation.
  void follow() {
    const std::string line = psync("?", "-1");
    ASSERT_TRUE(line.starts_with("+FULLRESYNC ")) << line;
    id = line.substr(12, 40);
    offset = std::stoll(line.substr(53));
    snapshot = take_snapshot();
    confirm();
  }
  std::string take_snapshot() {
    const std::string head = wire.through("\r\n");
    EXPECT_TRUE(head.starts_with("$EOF:")) << head;
    const std::string mark = head.substr(5, 40);
    std::string bytes = wire.through(mark);
    bytes.resize(bytes.size() - mark.size());
    return bytes;
  }
  void confirm() { wire.send(encode({"REPLCONF", "ACK", std::to_string(offset)})); }
  void confirm_synced(std::int64_t synced) {
    wire.send(encode({"REPLCONF", "ACK", std::to_string(offset), "FACK", std::to_string(synced)}));
  }
  // What arrives up to the end of that request; it counts as applied.
  std::string take(const std::vector<std::string>& last) {
    const std::string bytes = wire.through(encode(last));
    offset += static_cast<std::int64_t>(bytes.size());
    return bytes;
  }

  WireClient wire;
  std::string id;
  std::int64_t offset = 0;
  std::string snapshot;
};

}  // namespace weir::kv::testing
