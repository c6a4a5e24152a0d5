// metrics-port: the page that Prometheus reads from a running server.
#include "kv/server/metrics_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Settings with_page() {
  Settings settings = quiet_settings();
  settings.metrics_port = any_port;
  settings.metrics_bind = "127.0.0.1";
  return settings;
}

std::string page_of(RunningServer& server) {
  WireClient reader =
      WireClient::tcp(server.run([](Server& s) { return s.listeners.port_of_setting("metrics-port"); }));
  reader.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return reader.until_closed();
}

TEST(MetricsPage, shows_commands_errors_databases_and_memory_under_redis_exporters_names) {
  RunningServer server(with_page());
  WireClient client = server.connect();
  client.call({"SET", "a", "1"});
  client.call({"SET", "b", "2", "EX", "100"});
  client.call({"LPUSH", "a", "1"});
  client.call({"GET", "a"});
  EXPECT_THAT(page_of(server),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\nredis_up 1\n"),
                    HasSubstr("\n# TYPE redis_commands_total counter\n"),
                    HasSubstr("\nredis_commands_total{cmd=\"set\"} 2\n"),
                    HasSubstr("\nredis_commands_failed_calls_total{cmd=\"lpush\"} 1\n"),
                    HasSubstr("\nredis_errors_total{err=\"WRONGTYPE\"} 1\n"),
                    HasSubstr("\nredis_db_keys{db=\"db0\"} 2\n"),
                    HasSubstr("\nredis_db_keys_expiring{db=\"db0\"} 1\n"),
                    HasSubstr("\nredis_keyspace_hits_total 1\n"), HasSubstr("\nredis_connected_clients 1\n"),
                    HasSubstr("\n# TYPE redis_memory_used_bytes gauge\nredis_memory_used_bytes ")));
}

TEST(MetricsPage, counts_as_no_command_and_no_client) {
  RunningServer server(with_page());
  WireClient client = server.connect();
  client.call({"PING"});
  page_of(server);
  server.advance_ms(MetricsPage::keep_ms);
  EXPECT_THAT(page_of(server), AllOf(HasSubstr("\nredis_commands_processed_total 1\n"),
                                     HasSubstr("\nredis_connections_received_total 1\n")));
}

TEST(MetricsPage, names_each_metric_once_and_in_the_formats_letters) {
  RunningServer server(with_page());
  const std::string page = page_of(server);
  const std::regex type("\n# TYPE ([^ ]+) (counter|gauge)\n");
  std::set<std::string> names;
  for (std::sregex_iterator at(page.begin(), page.end(), type), end; at != end; ++at) {
    EXPECT_TRUE(names.insert((*at)[1]).second) << (*at)[1];
    EXPECT_TRUE(std::regex_match((*at)[1].str(), std::regex("[a-z_]+"))) << (*at)[1];
  }
  EXPECT_GT(names.size(), 50u);
}

TEST(MetricsPage, has_each_metric_that_the_dashboard_shows) {
  RunningServer server(with_page());
  WireClient client = server.connect();
  client.call({"SET", "a", "1"});
  client.call({"LPUSH", "a", "1"});
  const std::string page = page_of(server);
  std::ifstream file(WEIR_GRAFANA_DASHBOARD);
  const std::string dashboard{std::istreambuf_iterator<char>(file), {}};
  const std::regex metric("(redis|weir_server)_[a-z_]+");
  int seen = 0;
  for (std::sregex_iterator at(dashboard.begin(), dashboard.end(), metric), end; at != end; ++at, ++seen)
    EXPECT_THAT(page, HasSubstr("# TYPE " + at->str() + ' '));
  EXPECT_GT(seen, 10);
}

TEST(MetricsPage, is_made_anew_once_a_second_however_often_it_is_read) {
  RunningServer server;
  server.run([](Server& s) {
    MetricsPage page(s);
    const auto commands_at = [&](std::int64_t now_ms) {
      ++s.stats.commands;
      const std::string_view field = "\nredis_commands_processed_total ";
      const std::string& text = page.at(now_ms);
      return text.substr(text.find(field) + field.size(), 1);
    };
    EXPECT_EQ(commands_at(5000), "1");
    EXPECT_EQ(commands_at(5999), "1");
    EXPECT_EQ(commands_at(6000), "3");
    EXPECT_EQ(commands_at(5500), "4") << "the clock went back";
  });
}

TEST(MetricsPage, is_not_served_unless_asked_for) {
  RunningServer server;
  EXPECT_THAT(server.run([](Server& s) { return s.listeners.where(); }),
              Not(Contains(StartsWith("metrics"))));
}

TEST(MetricsPage, comes_and_goes_with_config_set) {
  RunningServer server;
  WireClient client = server.connect();
  const auto pages = [](Server& s) { return s.listeners.port_of_setting("metrics-port"); };
  EXPECT_EQ(client.call({"CONFIG", "SET", "metrics-bind", "127.0.0.1", "metrics-port", "-1"}), "+OK\r\n");
  EXPECT_NE(server.run(pages), 0);
  EXPECT_THAT(page_of(server), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_EQ(client.call({"CONFIG", "SET", "metrics-port", "0"}), "+OK\r\n");
  EXPECT_EQ(server.run(pages), 0);
}

TEST(MetricsPage, does_not_hold_up_clients_while_a_reader_is_silent) {
  RunningServer server(with_page());
  WireClient silent =
      WireClient::tcp(server.run([](Server& s) { return s.listeners.port_of_setting("metrics-port"); }));
  silent.send("GET /met");
  EXPECT_EQ(server.connect().call({"PING"}), "+PONG\r\n");
  EXPECT_TRUE(silent.quiet());
}

}  // namespace
}  // namespace weir::kv::testing
