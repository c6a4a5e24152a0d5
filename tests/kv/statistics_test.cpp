// What the server reports about its clients, its errors and the use of its keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/commands/latency_report.hpp"
#include "kv/counting/latency_events.hpp"
#include "kv/counting/latency_histogram.hpp"
#include "kv/counting/recent_rate.hpp"
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

TEST(RecentRate, is_of_the_last_second_and_a_half) {
  RecentRate rate;
  EXPECT_EQ(rate.at(1000, 0), 0) << "nothing is known";
  std::uint64_t counter = 0;
  for (std::int64_t ms = 0; ms <= 10'000; ms += 100) {
    counter += ms <= 5'000 ? 100 : 20;
    rate.sample(ms, counter);
    if (ms == 5'000) {
      EXPECT_EQ(rate.at(5'050, counter + 50), 1000);
    }
  }
  EXPECT_EQ(rate.at(10'050, counter + 10), 200);
  EXPECT_NEAR(rate.at(100'000, counter + 900), 10, 0.2) << "idle since the last sample";
  EXPECT_EQ(rate.at(10'100, 5), 0) << "begun again";
}

TEST(Info, tells_the_rate_of_commands) {
  RunningServer server;
  WireClient a = server.connect();
  for (int tenth = 0; tenth < 20; ++tenth) {
    server.advance_ms(100);
    for (int i = 0; i < 10; ++i) a.call({"PING"});
  }
  const std::string stats = a.call({"INFO", "stats"});
  const std::size_t at = stats.find("instantaneous_ops_per_sec:");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(stats.substr(stats.find(':', at) + 1)), 100, 10);
}

TEST(LatencyHistogram, tells_percentiles_to_two_digits) {
  LatencyHistogram latency;
  EXPECT_EQ(latency.count(), 0u);
  for (std::uint64_t cycles = 1; cycles <= 100'000; ++cycles) latency.record(cycles);
  for (const double percent : {0.0, 0.1, 1.0, 50.0, 99.0, 99.9, 100.0}) {
    const double exact = std::max(1.0, percent * 1000);
    EXPECT_NEAR(static_cast<double>(latency.percentile_cycles(percent)), exact, exact / 128) << percent;
  }
  latency.record(~std::uint64_t{0});
  EXPECT_EQ(latency.percentile_cycles(100), (std::uint64_t{1} << 34) - 1) << "longer ones count as that";
  std::uint64_t count = 0;
  latency.each_bucket([&](std::uint64_t, std::uint64_t here) { count += here; });
  EXPECT_EQ(count, latency.count());
}

TEST(LatencyStatistics, tell_percentiles_and_a_histogram_of_each_command) {
  RunningServer server;
  WireClient a = server.connect();
  for (int i = 0; i < 10; ++i) a.call({"SET", "k", "v"});
  a.call({"CONFIG", "GET", "port"});
  EXPECT_THAT(
      a.call({"INFO", "latencystats"}),
      ::testing::ContainsRegex("latency_percentiles_usec_set:p50=[0-9]+\\.[0-9][0-9][0-9],p99=[0-9.]+,"
                               "p99\\.9=[0-9.]+\r\n"));
  EXPECT_THAT(a.call({"INFO"}), ::testing::Not(HasSubstr("latency_percentiles")));
  EXPECT_THAT(a.call({"INFO", "all"}), HasSubstr("latency_percentiles_usec_config|get:p50="));
  for (const char* name : {"set", "config", "Config|Get"}) {
    const std::string histogram = a.call({"LATENCY", "HISTOGRAM", name});
    EXPECT_THAT(histogram, HasSubstr(name == std::string("set") ? "\r\nset\r\n" : "\r\nconfig|get\r\n"));
    EXPECT_THAT(histogram, HasSubstr(name == std::string("set") ? "calls\r\n:10\r\n" : "calls\r\n:1\r\n"));
  }
  // The last step counts all calls, and is one of Redis's boundaries: 1, 2, 4, 8, 16, 33, 66 us ...
  const std::vector<std::string> set = elements(a.call({"LATENCY", "HISTOGRAM", "set"}));
  EXPECT_THAT(
      set.back(),
      ::testing::ContainsRegex(
          ":(1|2|4|8|16|33|66|132|264|528|1056|2113|4227|8454|16908|33816|67633|135266)\r\n:10\r\n$"));
  a.call({"CONFIG", "SET", "latency-tracking", "no"});
  a.call({"CONFIG", "RESETSTAT"});
  a.call({"SET", "k", "v"});
  EXPECT_EQ(a.call({"LATENCY", "HISTOGRAM"}), "*0\r\n");
}

TEST(LatencyStatistics, count_a_blocked_command_when_it_is_served) {
  RunningServer server;
  WireClient waiter = server.connect();
  WireClient other = server.connect();
  waiter.send(encode({"BLPOP", "q", "0"}));
  while (server.run([](Server& s) { return s.blocking.size(); }) != 1) {
  }
  EXPECT_EQ(other.call({"LATENCY", "HISTOGRAM", "blpop"}), "*0\r\n");
  other.call({"RPUSH", "q", "x"});
  waiter.reply();
  EXPECT_THAT(other.call({"LATENCY", "HISTOGRAM", "blpop"}), HasSubstr("calls\r\n:1\r\n"));
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

TEST(MemoryStatistics, remember_the_peak) {
  RunningServer server;
  WireClient a = server.connect();
  const auto field = [&](const std::string& name) {
    const std::string info = a.call({"INFO", "memory"});
    return std::stoll(info.substr(info.find("\r\n" + name + ':') + name.size() + 3));
  };
  const long long start = field("used_memory_startup");
  EXPECT_GT(start, 0);
  EXPECT_GE(field("used_memory"), start);
  a.call({"SET", "k", std::string(10'000'000, 'x')});
  server.advance_ms(1000);
  a.call({"DEL", "k"});
  EXPECT_GT(field("used_memory_peak"), start + 10'000'000);
  EXPECT_LT(field("used_memory"), start + 5'000'000);
  EXPECT_LT(field("used_memory_peak_perc"), 50);
}

TEST(ClientList, shows_the_bytes_of_the_request_that_asks_and_of_those_behind_it) {
  RunningServer server;
  WireClient a = server.connect();
  EXPECT_THAT(a.call({"CLIENT", "LIST"}), HasSubstr(" qbuf=26 "));
  const std::string ping = encode({"PING"});
  a.send(encode({"CLIENT", "LIST"}) + ping);
  EXPECT_THAT(a.reply(), HasSubstr(" qbuf=" + std::to_string(26 + ping.size()) + ' '));
}

TEST(NoTouch, leaves_no_trace_of_use_but_by_touch) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1"});
  server.advance_ms(5000);
  EXPECT_EQ(a.call({"CLIENT", "NO-TOUCH", "ON"}), "+OK\r\n");
  a.call({"GET", "k"});
  EXPECT_EQ(a.call({"OBJECT", "IDLETIME", "k"}), ":5\r\n");
  EXPECT_THAT(a.call({"CLIENT", "INFO"}), HasSubstr("flags=UT"));
  a.call({"TOUCH", "k"});
  EXPECT_EQ(a.call({"OBJECT", "IDLETIME", "k"}), ":0\r\n");
  server.advance_ms(5000);
  a.call({"CLIENT", "NO-TOUCH", "OFF"});
  a.call({"GET", "k"});
  EXPECT_EQ(a.call({"OBJECT", "IDLETIME", "k"}), ":0\r\n");
}

TEST(ClientInfo, tells_what_runs_in_the_client) {
  RunningServer server;
  WireClient a = server.connect();
  EXPECT_EQ(a.call({"CLIENT", "SETINFO", "lib-name", "redis-py"}), "+OK\r\n");
  EXPECT_EQ(a.call({"CLIENT", "SETINFO", "LIB-VER", "5.0.1"}), "+OK\r\n");
  EXPECT_THAT(a.call({"CLIENT", "INFO"}), HasSubstr(" lib-name=redis-py lib-ver=5.0.1 "));
  EXPECT_EQ(a.call({"CLIENT", "SETINFO", "LIB-VER", "a b"}),
            "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(a.call({"CLIENT", "SETINFO", "LIB", "a"}), "-ERR Unrecognized option 'LIB'\r\n");
}

TEST(LatencyEvents, are_commands_that_took_longer_than_the_threshold) {
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  RunningServer server(std::move(settings));
  WireClient a = server.connect();
  a.call({"DEBUG", "SLEEP", "0.005"});
  EXPECT_EQ(a.call({"LATENCY", "LATEST"}), "*0\r\n") << "nobody asked";
  EXPECT_THAT(a.call({"LATENCY", "DOCTOR"}), HasSubstr("not monitored"));
  a.call({"CONFIG", "SET", "latency-monitor-threshold", "5000"});
  EXPECT_THAT(a.call({"LATENCY", "DOCTOR"}), HasSubstr("Nothing took as long as 5000 ms"));
  a.call({"CONFIG", "SET", "latency-monitor-threshold", "4"});
  a.call({"DEBUG", "SLEEP", "0.005"});
  EXPECT_THAT(a.call({"LATENCY", "LATEST"}), HasSubstr("*1\r\n*4\r\n$7\r\ncommand\r\n"));
  EXPECT_THAT(a.call({"LATENCY", "HISTORY", "command"}), HasSubstr("\r\n*2\r\n:"));
  EXPECT_THAT(a.call({"LATENCY", "GRAPH", "command"}), HasSubstr("command - high "));
  EXPECT_EQ(a.call({"LATENCY", "GRAPH", "fork"}), "-ERR No samples available for event 'fork'\r\n");
  EXPECT_THAT(a.call({"LATENCY", "DOCTOR"}), HasSubstr("- command: "));
  a.call({"CONFIG", "SET", "latency-monitor-threshold", "0"});
  EXPECT_EQ(a.call({"LATENCY", "RESET", "fork", "command"}), ":1\r\n");
  EXPECT_EQ(a.call({"LATENCY", "RESET"}), ":0\r\n");
}

TEST(LatencyEvents, are_one_a_second_and_the_last_ones) {
  LatencyEvents events;
  events.note("command", 10, 5);
  events.note("command", 10, 9);
  events.note("command", 10, 7);
  ASSERT_EQ(events.find("command")->samples.size(), 1u);
  EXPECT_EQ(events.find("command")->samples[0].ms, 9);
  for (std::int64_t second = 11; second < 1000; ++second) events.note("command", second, 1);
  EXPECT_EQ(events.find("command")->samples.size(), LatencyEvents::samples_kept);
  EXPECT_EQ(events.find("command")->worst_ms, 9);
  EXPECT_EQ(events.find("expire-cycle"), nullptr);
}

TEST(LatencyGraph, shows_samples_side_by_side) {
  LatencyEvents::Event event;
  event.samples = {{100, 10}, {3000, 12}, {4000, 21}};
  event.worst_ms = 30;
  EXPECT_EQ(latency_graph("command", event, 4005), "command - high 21 ms, low 10 ms (all time high 30 ms)\n" +
                                                       std::string(80, '-') +
                                                       "\n  #\n  |\n  |\n_#|\n\n115\nh6s\n m \n");
}

TEST(MemoryStatistics, add_up) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"HELLO", "3"});
  EXPECT_TRUE(a.call({"MEMORY", "STATS"}).starts_with("%27\r\n$14\r\npeak.allocated\r\n:"));
  a.call({"SET", "k", "1", "EX", "100"});
  const std::string stats = a.call({"MEMORY", "STATS"});
  EXPECT_TRUE(stats.starts_with("%28\r\n"));
  EXPECT_THAT(stats, HasSubstr("\r\n$4\r\ndb.0\r\n%3\r\n$23\r\noverhead.hashtable.main\r\n:"));
  EXPECT_THAT(stats, HasSubstr("\r\nkeys.count\r\n:1\r\n"));
  EXPECT_THAT(a.call({"MEMORY", "DOCTOR"}), HasSubstr("txt:There is almost no data"));
  EXPECT_GT(a.call({"MEMORY", "MALLOC-STATS"}).size(), 100u);
}

}  // namespace
}  // namespace weir::kv::testing
