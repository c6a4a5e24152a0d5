// NCCL's network transport in two processes, through each version of the interface: the plugin is opened with
// dlopen in both, connected, used and closed as NCCL does.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/nccl/scenarios.hpp"
#include "tests/piped_child.hpp"

namespace weir::nccl::testing_support {
namespace {

class NcclDriver : public ::testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(NcclDriver, ranks_agree) {
  const auto& [version, scenario] = GetParam();
  constexpr std::uint64_t seed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(seed));
  test::PipedChild child({NCCL_PEER, NCCL_PLUGIN, std::to_string(version), scenario, std::to_string(seed)});
  const auto net = open_net(NCCL_PLUGIN, version);
  Rank rank{
      *net, 0, {[&](const std::string& line) { child.say(line); }, [&] { return child.line(); }}, seed, {}};
  ASSERT_EQ(net->init(keep_log()), Status::success) << kept_log();
  int devices = 0;
  ASSERT_EQ(net->devices(&devices), Status::success);
  ASSERT_GT(devices, 0);
  AnyProperties properties;
  ASSERT_EQ(net->properties(0, properties), Status::success);
  EXPECT_EQ(properties.max_receives, 8);
  try {
    run_scenario(scenario, rank);
  } catch (const std::exception& failure) {
    child.end_input();
    FAIL() << failure.what() << "\nthe other rank: " << child.line();
  }
  EXPECT_EQ(net->finalize(), Status::success);
  EXPECT_EQ(child.line(), "ok");
}

INSTANTIATE_TEST_SUITE_P(, NcclDriver,
                         ::testing::Combine(::testing::ValuesIn(all_versions),
                                            ::testing::Values("transfer", "ring", "groups", "lone_send",
                                                              "close_in_flight", "reused_listener", "threads",
                                                              "optional_completion")),
                         [](const auto& test) {
                           return "v" + std::to_string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

}  // namespace
}  // namespace weir::nccl::testing_support
