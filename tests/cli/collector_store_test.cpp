// How a telemetry collector stores notifications: as series for Prometheus and lines of JSON.
#include "cli/weir/network/collector_store.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace weir::command {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TelemetryNotification said(const std::vector<TelemetryValue>& values, std::int64_t timestamp = 1,
                           const char* sender = "") {
  return {sender, timestamp, "leaf1", values.data(), values.size()};
}

std::string metrics_of(const char* path, const char* json) {
  CollectorStore store;
  const std::vector<TelemetryValue> values = {{path, json}};
  store.keep(said(values));
  return store.metrics();
}

struct Form {
  const char* name;
  const char* path;
  const char* json;
  const char* sample;
};

class CollectorForms : public testing::TestWithParam<Form> {};

TEST_P(CollectorForms, becomes_this_sample) {
  const auto text = metrics_of(GetParam().path, GetParam().json);
  EXPECT_THAT(text, HasSubstr(std::string("\n") + GetParam().sample + "\n"));
  EXPECT_THAT(text, HasSubstr("weir_collector_not_understood_total 0\n"));
}

constexpr Form forms[] = {
    {"port", "COUNTERS/Ethernet0", R"({"SAI_PORT_STAT_PFC_3_RX_PKTS":"12"})",
     R"(SAI_PORT_STAT_PFC_3_RX_PKTS{device="leaf1",port="Ethernet0"} 12)"},
    {"queues", "COUNTERS/Ethernet0/Queues", R"({"Ethernet0:3":{"SAI_QUEUE_STAT_PACKETS":"7"}})",
     R"(SAI_QUEUE_STAT_PACKETS{device="leaf1",port="Ethernet0",queue="3"} 7)"},
    {"groups", "COUNTERS/Ethernet0/PriorityGroups",
     R"({"Ethernet0:3":{"SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES":"8"}})",
     R"(SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES{device="leaf1",port="Ethernet0",priority_group="3"} 8)"},
    {"wildcard", "COUNTERS/Ethernet*/SAI_PORT_STAT_PFC_7_RX_PKTS",
     R"({"Ethernet4":{"SAI_PORT_STAT_PFC_7_RX_PKTS":"9"}})",
     R"(SAI_PORT_STAT_PFC_7_RX_PKTS{device="leaf1",port="Ethernet4"} 9)"},
    {"leaf", "COUNTERS/Ethernet0/SAI_PORT_STAT_PFC_7_RX_PKTS", "5",
     R"(SAI_PORT_STAT_PFC_7_RX_PKTS{device="leaf1",port="Ethernet0"} 5)"},
    {"exact_to_2_53", "COUNTERS/Ethernet0", R"({"SAI_PORT_STAT_IF_IN_OCTETS":"9007199254740992"})",
     R"(SAI_PORT_STAT_IF_IN_OCTETS{device="leaf1",port="Ethernet0"} 9007199254740992)"},
    {"odd_name", "COUNTERS/Ethernet0", R"({"1 odd-name":1})",
     R"(_1_odd_name{device="leaf1",port="Ethernet0"} 1)"},
    {"name_of_the_collectors_own", "COUNTERS/Ethernet0", R"({"weir_collector_repeated_total":1})",
     R"(_weir_collector_repeated_total{device="leaf1",port="Ethernet0"} 1)"},
    {"escaped", "COUNTERS/a\"b\\c", R"({"X":1})", R"(X{device="leaf1",port="a\"b\\c"} 1)"}};
INSTANTIATE_TEST_SUITE_P(Collector, CollectorForms, testing::ValuesIn(forms),
                         [](const auto& row) { return std::string(row.param.name); });

class CollectorGarbage : public testing::TestWithParam<const char*> {};

TEST_P(CollectorGarbage, is_counted_and_shown_nowhere) {
  const auto text = metrics_of("COUNTERS/Ethernet0", GetParam());
  EXPECT_THAT(text, HasSubstr("weir_collector_not_understood_total 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("device=")));
}
INSTANTIATE_TEST_SUITE_P(Collector, CollectorGarbage,
                         testing::Values("", "{", "\xff\xfe", R"({"X":"1e999"})", R"({"X":"nan"})",
                                         R"({"X":null})", R"({"X":"12 apples"})", R"({"X":[1]})",
                                         R"({"a":{"b":{"c":{"d":{"e":{"X":1}}}}}})"),
                         [](const auto& row) { return "row" + std::to_string(row.index); });

TEST(CollectorStore, repeats_of_a_sender_are_not_new) {
  CollectorStore store;
  const std::vector<TelemetryValue> values;
  EXPECT_TRUE(store.is_new(said(values, 5, "one")));
  store.keep(said(values, 5, "one"));
  EXPECT_FALSE(store.is_new(said(values, 5, "one")));
  EXPECT_FALSE(store.is_new(said(values, 4, "one")));
  EXPECT_TRUE(store.is_new(said(values, 6, "one")));
  EXPECT_TRUE(store.is_new(said(values, 5, "other")));
  EXPECT_TRUE(store.is_new(said(values, 5, "")));
}

TEST(CollectorStore, refuses_series_beyond_its_bound_and_still_updates_the_others) {
  CollectorStore store(2);
  const std::vector<TelemetryValue> first = {{"COUNTERS/Ethernet0", R"({"A":1,"B":1,"C":1})"}};
  const std::vector<TelemetryValue> second = {{"COUNTERS/Ethernet0", R"({"A":2})"}};
  store.keep(said(first));
  store.keep(said(second));
  const auto text = store.metrics();
  EXPECT_THAT(text, HasSubstr("A{device=\"leaf1\",port=\"Ethernet0\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("C{")));
  EXPECT_THAT(text, HasSubstr("weir_collector_series_refused_total 1\n"));
}

TEST(CollectorLines, hold_what_was_said_or_its_text) {
  const std::vector<TelemetryValue> values = {{"COUNTERS/Ethernet0", R"({"A":"1"})"}, {"x", "{broken\xff"}};
  EXPECT_EQ(
      json_lines(said(values, 42)),
      "{\"timestamp\":42,\"device\":\"leaf1\",\"path\":\"COUNTERS/Ethernet0\",\"values\":{\"A\":\"1\"}}\n"
      "{\"timestamp\":42,\"device\":\"leaf1\",\"path\":\"x\",\"values\":\"{broken\xef\xbf\xbd\"}\n");
}

TEST(CollectorLines, value_of_a_million_levels_is_text_and_not_a_million_calls) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::vector<TelemetryValue> values = {{"x", deep.c_str()}};
  EXPECT_THAT(json_lines(said(values)), HasSubstr("\"values\":\"[[["));
  CollectorStore store;
  store.keep(said(values));
  EXPECT_THAT(store.metrics(), HasSubstr("weir_collector_not_understood_total 1\n"));
  const std::vector<TelemetryValue> brackets_in_text = {
      {"x", R"({"A":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["})"}};
  EXPECT_THAT(json_lines(said(brackets_in_text)), HasSubstr("\"values\":{\"A\":"));
}

TEST(CollectorStore, is_bounded_in_bytes_whatever_the_names) {
  constexpr std::size_t most_bytes = 20'000;
  CollectorStore store(1'000'000, 1024, most_bytes);
  for (int i = 0; i < 1000; ++i) {
    const std::string path = "COUNTERS/Ethernet" + std::to_string(i) + std::string(500, 'x');
    const std::vector<TelemetryValue> values = {{path.c_str(), R"({"X":1})"}};
    store.keep(said(values, i));
  }
  EXPECT_LT(store.metrics().size(), 2 * most_bytes);
  EXPECT_THAT(store.metrics(), Not(HasSubstr("weir_collector_series_refused_total 0\n")));
}

TEST(CollectorStore, keeps_no_name_that_is_longer_than_any_switch_has) {
  const std::string path = "COUNTERS/" + std::string(1 << 20, 'x');
  EXPECT_THAT(metrics_of(path.c_str(), R"({"X":1})"), HasSubstr("weir_collector_series_refused_total 1\n"));
}

}  // namespace
}  // namespace weir::command
