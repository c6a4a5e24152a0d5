// The queue pair state machine compared with the specification's table (IBA volume 1,
// table 91; ibv_modify_qp(3)).
#include "rnic/queue_pair/queue_pair_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::rnic {
namespace {

using enum QpState;
using namespace attr;

struct Transition {
  QpType type;
  QpState from, to;
  std::uint32_t required, optional;
};

constexpr std::uint32_t rc_sqd_optional = port | av | timeout | retry_cnt | rnr_retry | max_qp_rd_atomic |
                                          max_dest_rd_atomic | cur_state | alt_path | access_flags |
                                          pkey_index | min_rnr_timer | path_mig_state;
constexpr std::uint32_t uc_sqd_optional =
    av | cur_state | alt_path | access_flags | pkey_index | path_mig_state;
constexpr std::uint32_t rc_rts_optional =
    cur_state | alt_path | access_flags | min_rnr_timer | path_mig_state;
constexpr std::uint32_t uc_rts_optional = cur_state | alt_path | access_flags | path_mig_state;

const std::vector<Transition> table = {
    {QpType::rc, reset, init, pkey_index | port | access_flags, 0},
    {QpType::rc, init, init, 0, pkey_index | port | access_flags},
    {QpType::rc, init, rtr, av | path_mtu | dest_qpn | rq_psn | max_dest_rd_atomic | min_rnr_timer,
     alt_path | access_flags | pkey_index},
    {QpType::rc, rtr, rts, timeout | retry_cnt | rnr_retry | sq_psn | max_qp_rd_atomic, rc_rts_optional},
    {QpType::rc, rts, rts, 0, rc_rts_optional},
    {QpType::rc, rts, sqd, 0, en_sqd_async_notify},
    {QpType::rc, sqd, sqd, 0, rc_sqd_optional},
    {QpType::rc, sqd, rts, 0, rc_rts_optional},

    {QpType::uc, reset, init, pkey_index | port | access_flags, 0},
    {QpType::uc, init, init, 0, pkey_index | port | access_flags},
    {QpType::uc, init, rtr, av | path_mtu | dest_qpn | rq_psn, alt_path | access_flags | pkey_index},
    {QpType::uc, rtr, rts, sq_psn, uc_rts_optional},
    {QpType::uc, rts, rts, 0, uc_rts_optional},
    {QpType::uc, rts, sqd, 0, en_sqd_async_notify},
    {QpType::uc, sqd, sqd, 0, uc_sqd_optional},
    {QpType::uc, sqd, rts, 0, uc_rts_optional},
    {QpType::uc, sqe, rts, 0, cur_state | access_flags},

    {QpType::ud, reset, init, pkey_index | port | qkey, 0},
    {QpType::ud, init, init, 0, pkey_index | port | qkey},
    {QpType::ud, init, rtr, 0, pkey_index | qkey},
    {QpType::ud, rtr, rts, sq_psn, cur_state | qkey},
    {QpType::ud, rts, rts, 0, cur_state | qkey},
    {QpType::ud, rts, sqd, 0, en_sqd_async_notify},
    {QpType::ud, sqd, sqd, 0, pkey_index | qkey},
    {QpType::ud, sqd, rts, 0, cur_state | qkey},
    {QpType::ud, sqe, rts, 0, cur_state | qkey},

    // Raw packets as the kernel's table has them.
    {QpType::raw_packet, reset, init, port, 0},
    {QpType::raw_packet, init, init, 0, port},
    {QpType::raw_packet, init, rtr, 0, 0},
    {QpType::raw_packet, rtr, rts, 0, 0},
    {QpType::raw_packet, rts, rts, 0, 0},
    {QpType::raw_packet, rts, sqd, 0, 0},
    {QpType::raw_packet, sqd, sqd, 0, 0},
    {QpType::raw_packet, sqd, rts, 0, 0},
    {QpType::raw_packet, sqe, rts, 0, 0},

    // XRC as the kernel's table has it; the specification's has no rows for it.
    {QpType::xrc_send, reset, init, pkey_index | port | access_flags, 0},
    {QpType::xrc_recv, reset, init, pkey_index | port | access_flags, 0},

    {QpType::xrc_send, init, init, 0, pkey_index | port | access_flags},
    {QpType::xrc_recv, init, init, 0, pkey_index | port | access_flags},

    {QpType::xrc_send, init, rtr, av | path_mtu | dest_qpn | rq_psn, alt_path | access_flags | pkey_index},
    {QpType::xrc_recv, init, rtr, av | path_mtu | dest_qpn | rq_psn | max_dest_rd_atomic | min_rnr_timer,
     alt_path | access_flags | pkey_index},

    {QpType::xrc_send, rtr, rts, timeout | retry_cnt | rnr_retry | sq_psn | max_qp_rd_atomic,
     uc_rts_optional},
    {QpType::xrc_recv, rtr, rts, timeout | sq_psn, rc_rts_optional},

    {QpType::xrc_send, rts, rts, 0, uc_rts_optional},
    {QpType::xrc_recv, rts, rts, 0, rc_rts_optional},

    {QpType::xrc_send, rts, sqd, 0, en_sqd_async_notify},
    {QpType::xrc_recv, rts, sqd, 0, en_sqd_async_notify},

    {QpType::xrc_send, sqd, sqd, 0,
     port | av | timeout | retry_cnt | rnr_retry | max_qp_rd_atomic | cur_state | alt_path | access_flags |
         pkey_index | path_mig_state},
    {QpType::xrc_recv, sqd, sqd, 0,
     port | av | timeout | max_dest_rd_atomic | cur_state | alt_path | access_flags | pkey_index |
         min_rnr_timer | path_mig_state},

    {QpType::xrc_send, sqd, rts, 0, uc_rts_optional},
    {QpType::xrc_recv, sqd, rts, 0, rc_rts_optional},
};

// Every attribute that a modify can name, but the state itself and rate_limit, which no row is asked about.
std::vector<std::uint32_t> attributes() {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t bit = cur_state; bit <= dest_qpn; bit <<= 1) bits.push_back(bit);
  return bits;
}

constexpr QpType types[] = {QpType::rc,         QpType::uc,       QpType::ud,
                            QpType::raw_packet, QpType::xrc_send, QpType::xrc_recv};
constexpr QpState states[] = {reset, init, rtr, rts, sqd, sqe, err};

std::string describe(const Transition& t) {
  return "type " + std::to_string(static_cast<int>(t.type)) + " from " +
         std::to_string(static_cast<int>(t.from)) + " to " + std::to_string(static_cast<int>(t.to));
}

TEST(QueuePairState, allows_each_transition_of_the_table_with_its_required_attributes) {
  for (const Transition& t : table) {
    SCOPED_TRACE(describe(t));
    EXPECT_EQ(check_modify(t.type, t.from, t.to, t.required), std::nullopt);
    EXPECT_EQ(check_modify(t.type, t.from, t.to, t.required | state), std::nullopt);
  }
}

TEST(QueuePairState, allows_each_optional_attribute) {
  for (const Transition& t : table) {
    SCOPED_TRACE(describe(t));
    for (const std::uint32_t bit : attributes()) {
      if (!(t.optional & bit)) continue;
      EXPECT_EQ(check_modify(t.type, t.from, t.to, t.required | bit), std::nullopt) << bit;
    }
  }
}

TEST(QueuePairState, refuses_each_missing_required_attribute) {
  for (const Transition& t : table) {
    SCOPED_TRACE(describe(t));
    for (const std::uint32_t bit : attributes()) {
      if (!(t.required & bit)) continue;
      EXPECT_EQ(check_modify(t.type, t.from, t.to, t.required & ~bit), ModifyRefusal::attribute_missing)
          << bit;
    }
  }
}

TEST(QueuePairState, refuses_each_attribute_that_a_transition_does_not_have) {
  for (const Transition& t : table) {
    SCOPED_TRACE(describe(t));
    for (const std::uint32_t bit : attributes()) {
      if ((t.required | t.optional) & bit) continue;
      EXPECT_EQ(check_modify(t.type, t.from, t.to, t.required | bit), ModifyRefusal::attribute_not_allowed)
          << bit;
    }
  }
}

TEST(QueuePairState, refuses_every_transition_outside_the_table) {
  for (const QpType type : types) {
    for (const QpState from : states) {
      for (const QpState to : states) {
        const bool listed = std::any_of(table.begin(), table.end(), [&](const Transition& t) {
          return t.type == type && t.from == from && t.to == to;
        });
        if (listed || to == reset || to == err) continue;
        SCOPED_TRACE(describe({type, from, to, 0, 0}));
        EXPECT_EQ(check_modify(type, from, to, 0), ModifyRefusal::no_such_transition);
        EXPECT_EQ(check_modify(type, from, to, ~0u), ModifyRefusal::no_such_transition);
      }
    }
  }
}

TEST(QueuePairState, allows_reset_and_error_from_every_state) {
  for (const QpType type : types) {
    for (const QpState from : states) {
      EXPECT_EQ(check_modify(type, from, reset, state), std::nullopt);
      EXPECT_EQ(check_modify(type, from, err, state), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace weir::rnic
