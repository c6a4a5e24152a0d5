#include "faults/call_faults.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "faults/language.hpp"

namespace weir::faults {
namespace {

// What twelve calls of queue pair 1 return: a letter for each that fails.
std::string of_twelve(std::string_view text, Call call, std::uint64_t qp = 1) {
  CallFaults faults(read_plan(text).value());
  std::string result;
  for (std::uint64_t i = 0; i < 12; ++i) result += faults.judge(call, qp, i * 1000) ? 'x' : '.';
  return result;
}

TEST(CallFaults, conditions_choose_the_calls_that_fail) {
  struct Row {
    std::string_view text;
    Call call;
    std::string_view expected;
  };
  const Row rows[] = {
      {"refuse ENOMEM call=ibv_post_send", Call::post_send, "xxxxxxxxxxxx"},
      {"refuse ENOMEM call=ibv_post_send", Call::post_recv, "............"},
      {"refuse ENOMEM call=ibv_post_send nth=7", Call::post_send, "......x....."},
      {"refuse EINVAL call=ibv_reg_mr every=4 times=2", Call::reg_mr, "...x...x...."},
      {"refuse EAGAIN call=ibv_create_qp from=2us until=4us", Call::create_qp, "..xx........"},
      {"refuse EIO call=ibv_start_poll nth=2", Call::start_poll, ".x.........."},
      {"refuse ENOMEM call=ibv_wr_complete nth=2..3", Call::wr_complete, ".xx........."},
      {"refuse EIO call=ibv_post_send qp=2", Call::post_send, "............"},
      {"complete IBV_WC_RETRY_EXC_ERR qp=1 nth=3", Call::completion, "..x........."},
      {"complete IBV_WC_RETRY_EXC_ERR", Call::post_send, "............"},
      {"qp-error qp=1 nth=3", Call::polled, "..x........."},
      {"qp-error qp=2 nth=3", Call::polled, "............"},
      {"qp-error nth=3 from=6us", Call::polled, "........x..."},
      {"qp-error from=1us", Call::polled, "............"},
      {"qp-error nth=3", Call::completion, "............"},
      {"drop", Call::post_send, "............"},
  };
  for (const Row& row : rows) EXPECT_EQ(of_twelve(row.text, row.call), row.expected) << row.text;
}

TEST(CallFaults, a_failure_has_the_value_that_was_written) {
  CallFaults faults(read_plan("refuse ENOMEM call=ibv_reg_mr\ncomplete IBV_WC_REM_ACCESS_ERR").value());
  EXPECT_EQ(faults.judge(Call::reg_mr, 0, 0), std::uint64_t{ENOMEM});
  EXPECT_EQ(faults.judge(Call::completion, 1, 0), 10u);
}

TEST(CallFaults, only_calls_with_faults_are_concerned) {
  const CallFaults faults(read_plan("refuse ENOMEM call=ibv_post_send\ndrop").value());
  EXPECT_TRUE(faults.concern(Call::post_send));
  EXPECT_FALSE(faults.concern(Call::post_recv));
  EXPECT_FALSE(faults.concern(Call::completion));
}

TEST(CallFaults, rate_draws_the_same_calls_from_the_same_seed) {
  const std::string text = "refuse ENOMEM call=ibv_post_send rate=30%";
  EXPECT_EQ(of_twelve("seed 5\n" + text, Call::post_send), of_twelve("seed 5\n" + text, Call::post_send));
  EXPECT_NE(of_twelve("seed 5\n" + text, Call::post_send), of_twelve("seed 6\n" + text, Call::post_send));
}

}  // namespace
}  // namespace weir::faults
