// What the server tells of its clients, its errors and the use of its keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::HasSubstr;

class Looking : public ::testing::TestWithParam<const char*> {};

TEST_P(Looking, at_a_key_does_not_use_it) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1", "EX", "1000"});
  server.advance_ms(5000);
  a.call({GetParam(), "k"});
  EXPECT_EQ(a.call({"OBJECT", "IDLETIME", "k"}), ":5\r\n");
  a.call({"TOUCH", "k"});
  EXPECT_EQ(a.call({"OBJECT", "IDLETIME", "k"}), ":0\r\n");
}
INSTANTIATE_TEST_SUITE_P(Commands, Looking,
                         ::testing::Values("EXISTS", "TYPE", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(ErrorStatistics, count_an_unblocked_command_as_failed) {
  RunningServer server;
  WireClient waiter = server.connect();
  WireClient other = server.connect();
  const std::string id = waiter.call({"CLIENT", "ID"});
  waiter.send(encode({"BLPOP", "q", "0"}));
  while (server.run([](Server& s) { return s.blocking.size(); }) != 1) {
  }
  other.call({"CLIENT", "UNBLOCK", id.substr(1, id.size() - 3), "ERROR"});
  waiter.reply();
  EXPECT_THAT(other.call({"INFO", "errorstats"}), HasSubstr("errorstat_UNBLOCKED:count=1\r\n"));
  EXPECT_THAT(other.call({"INFO", "commandstats"}),
              ::testing::ContainsRegex("cmdstat_blpop:calls=1,.*rejected_calls=0,failed_calls=1"));
  EXPECT_THAT(other.call({"INFO", "stats"}), HasSubstr("total_error_replies:1\r\n"));
}

TEST(ErrorStatistics, charge_a_transactions_errors_to_the_commands_that_made_them) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"MULTI"});
  a.call({"INCRBY", "n", "no"});
  a.call({"EXEC"});
  const std::string calls = a.call({"INFO", "commandstats"});
  EXPECT_THAT(calls, ::testing::ContainsRegex("cmdstat_incrby:calls=1,.*failed_calls=1"));
  EXPECT_THAT(calls, ::testing::ContainsRegex("cmdstat_exec:calls=1,.*failed_calls=0"));
}

TEST(OutOfMemory, refuses_a_transaction_that_was_queued_while_there_was_room) {
  RunningServer server;
  WireClient a = server.connect();
  WireClient b = server.connect();
  for (WireClient* client : {&a, &b}) client->call({"MULTI"});
  a.call({"SET", "k", "1"});
  b.call({"PING"});
  server.connect().call({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(a.call({"EXEC"}),
            "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > "
            "'maxmemory'.\r\n");
  EXPECT_EQ(b.call({"EXEC"}), "*1\r\n+PONG\r\n") << "needs no room";
}

TEST(BlockedClients, are_those_that_a_pause_holds_back_too) {
  RunningServer server;
  WireClient writer = server.connect();
  WireClient other = server.connect();
  other.call({"CLIENT", "PAUSE", "100000", "WRITE"});
  EXPECT_THAT(other.call({"INFO", "clients"}), HasSubstr("blocked_clients:0\r\n"));
  writer.send(encode({"SET", "k", "1"}));
  while (other.call({"INFO", "clients"}).find("blocked_clients:1\r\n") == std::string::npos) {
  }
  EXPECT_THAT(other.call({"CLIENT", "LIST"}), HasSubstr(" flags=b"));
  other.call({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(writer.reply(), "+OK\r\n");
  EXPECT_THAT(other.call({"INFO", "clients"}), HasSubstr("blocked_clients:0\r\n"));
}

TEST(ClientList, shows_the_bytes_of_the_request_that_asks_and_of_those_behind_it) {
  RunningServer server;
  WireClient a = server.connect();
  EXPECT_THAT(a.call({"CLIENT", "LIST"}), HasSubstr(" qbuf=26 "));
  const std::string ping = encode({"PING"});
  a.send(encode({"CLIENT", "LIST"}) + ping);
  EXPECT_THAT(a.reply(), HasSubstr(" qbuf=" + std::to_string(26 + ping.size()) + ' '));
}

}  // namespace
}  // namespace weir::kv::testing
