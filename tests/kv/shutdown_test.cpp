// The end of a server whose replicas lag.
#include <gtest/gtest.h>

#include "tests/kv/hand_replica.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

// A server with a replica that has not confirmed the last write.
struct Lagging {
  explicit Lagging(Settings settings = quiet_settings()) : server(std::move(settings)) {
    replica.follow();
    EXPECT_EQ(client.call({"SET", "k", "1"}), "+OK\r\n");
  }
  void confirm() {
    replica.take(asks_for_confirmation);
    replica.confirm();
  }
  // Waits until the server has done what was sent before.
  void settle() { EXPECT_EQ(client.call({"GET", "k"}), "$1\r\n1\r\n"); }

  RunningServer server;
  WireClient client = server.connect();
  WireClient operator_ = server.connect();
  HandReplica replica{server};
};

TEST(Shutdown, waits_until_a_lagging_replica_has_confirmed) {
  Lagging at;
  at.operator_.send("SHUTDOWN NOSAVE\r\n");
  at.replica.take(asks_for_confirmation);
  EXPECT_FALSE(at.server.asked_to_stop());
  EXPECT_NE(at.client.call({"INFO", "server"}).find("shutdown_in_milliseconds:"), std::string::npos);
  at.replica.confirm();
  while (!at.server.asked_to_stop()) std::this_thread::yield();
}

TEST(Shutdown, holds_writes_back_while_it_waits) {
  Lagging at;
  WireClient writer = at.server.connect();
  at.operator_.send("SHUTDOWN NOSAVE\r\n");
  at.replica.take(asks_for_confirmation);
  writer.send(encode({"SET", "k", "2"}));
  at.settle();
  EXPECT_TRUE(writer.quiet());
  EXPECT_EQ(at.client.call({"SHUTDOWN", "ABORT"}), "+OK\r\n");
  EXPECT_EQ(writer.reply(), "+OK\r\n");
  EXPECT_EQ(at.client.call({"GET", "k"}), "$1\r\n2\r\n");
}

TEST(Shutdown, called_off_answers_the_client_that_asked_for_it) {
  Lagging at;
  at.operator_.send("SHUTDOWN NOSAVE\r\n");
  at.replica.take(asks_for_confirmation);
  EXPECT_EQ(at.client.call({"SHUTDOWN", "ABORT"}), "+OK\r\n");
  EXPECT_EQ(at.operator_.reply(), "-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
  EXPECT_EQ(at.client.call({"SHUTDOWN", "ABORT"}), "-ERR No shutdown in progress.\r\n");
  at.replica.confirm();
  at.settle();
  EXPECT_FALSE(at.server.asked_to_stop());
}

TEST(Shutdown, does_not_wait_if_told_so) {
  const struct {
    std::string words;
    std::int64_t timeout_s;
  } rows[] = {{"SHUTDOWN NOSAVE NOW", 10}, {"SHUTDOWN NOW", 10}, {"SHUTDOWN NOSAVE", 0}};
  for (const auto& row : rows) {
    Settings settings = quiet_settings();
    settings.shutdown_timeout_s = row.timeout_s;
    Lagging at(std::move(settings));
    at.operator_.send(row.words + "\r\n");
    at.operator_.until_closed();
    EXPECT_TRUE(at.server.asked_to_stop()) << row.words;
  }
}

TEST(Shutdown, that_waits_ends_by_another_that_is_to_be_now) {
  Lagging at;
  at.operator_.send("SHUTDOWN NOSAVE\r\n");
  at.replica.take(asks_for_confirmation);
  at.client.send("SHUTDOWN NOW\r\n");
  at.client.until_closed();
  EXPECT_TRUE(at.server.asked_to_stop());
}

TEST(Shutdown, waits_no_longer_than_its_timeout) {
  Settings settings = quiet_settings();
  settings.shutdown_timeout_s = 1;
  Lagging at(std::move(settings));
  at.operator_.send("SHUTDOWN NOSAVE\r\n");
  at.replica.take(asks_for_confirmation);
  while (!at.server.asked_to_stop()) std::this_thread::yield();
  EXPECT_NE(at.server.log().find("which it may never get"), std::string::npos) << at.server.log();
}

TEST(Shutdown, waits_for_no_replica_that_left) {
  Lagging at;
  at.operator_.send("SHUTDOWN NOSAVE\r\n");
  at.replica.take(asks_for_confirmation);
  at.replica.wire.close();
  while (!at.server.asked_to_stop()) std::this_thread::yield();
}

TEST(Shutdown, that_cannot_save_lets_clients_write_again) {
  Settings settings = quiet_settings();
  settings.dir = "/proc";
  Lagging at(std::move(settings));
  at.operator_.send("SHUTDOWN SAVE\r\n");
  at.confirm();
  EXPECT_EQ(at.operator_.reply(), "-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
  EXPECT_EQ(at.client.call({"SET", "k", "3"}), "+OK\r\n");
  EXPECT_FALSE(at.server.asked_to_stop());
}

}  // namespace
}  // namespace weir::kv::testing
