// Every congestion control, in the network that scenario tests share.
#include <gtest/gtest.h>

#include "fabric/sim/scenario.hpp"
#include "fabric/sim/summary.hpp"
#include "tests/sim/four_leaves.hpp"

namespace weir::fabric::sim {
namespace {

Summary outcome(const std::string& control, std::string* bytes = nullptr) {
  const auto scenario =
      must_read(network + "[simulation]\nduration = \"20ms\"\n[transport]\ncongestion_control = \"" +
                control + "\"\n[[workload]]\nkind = \"incast\"\nsenders = 15\nbytes = \"2MB\"\n");
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  const auto summary = summarize(simulation, false);
  if (bytes) *bytes = flows_csv(simulation) + summary_json(simulation, summary, {});
  return summary;
}

TEST(CongestionControl, keeps_queues_shorter_and_the_link_full) {
  const auto without = outcome("none");
  for (const char* control : {"dcqcn", "dctcp", "hpcc", "swift"}) {
    const auto with = outcome(control);
    EXPECT_EQ(with.finished, 15u) << control;
    // DCQCN hears of the queue at most once in 4 us, and starts at line rate without a window.
    const double part = std::string(control) == "dcqcn" ? 0.8 : 0.2;
    EXPECT_LT(static_cast<double>(with.queue_most_bytes),
              part * static_cast<double>(without.queue_most_bytes))
        << control;
    EXPECT_LT(with.last_arrival_us, 1.25 * without.last_arrival_us) << control;
    EXPECT_EQ(with.totals.cnps != 0, std::string(control) == "dcqcn") << control;
  }
}

TEST(CongestionControl, gives_the_same_bytes_for_the_same_seed) {
  for (const char* control : {"dctcp", "hpcc", "swift"}) {
    std::string first, second;
    outcome(control, &first);
    outcome(control, &second);
    EXPECT_EQ(first, second) << control;
  }
}

TEST(CongestionControl, has_a_window_by_rate_where_its_paper_has_one) {
  const std::pair<const char*, bool> rows[] = {
      {"none", false}, {"dcqcn", false}, {"dctcp", true}, {"hpcc", true}, {"swift", true}};
  for (const auto& [control, windowed] : rows) {
    const auto scenario = must_read(network + "[transport]\ncongestion_control = \"" + control +
                                    "\"\n[[workload]]\nkind = \"incast\"\nsenders = 2\nbytes = \"100KB\"\n");
    const auto transport = prepare(scenario, scenario.knobs).experiment.transport;
    EXPECT_EQ(transport.window_time, windowed ? from_ns(scenario.plan.rtt_ns) : 0) << control;
    EXPECT_EQ(transport.window_by_rate, windowed) << control;
  }
}

}  // namespace
}  // namespace weir::fabric::sim
