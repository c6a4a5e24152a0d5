#include "rnic/queue_pair/queue_pair_state.hpp"

namespace weir::rnic {
namespace {

using namespace attr;

struct Row {
  QpType type;
  QpState from, to;
  std::uint32_t required, optional;
};

constexpr std::uint32_t rc_rts_optional =
    cur_state | alt_path | access_flags | min_rnr_timer | path_mig_state;
constexpr std::uint32_t uc_rts_optional = cur_state | alt_path | access_flags | path_mig_state;
constexpr std::uint32_t rc_sqd_optional = port | av | timeout | retry_cnt | rnr_retry | max_qp_rd_atomic |
                                          max_dest_rd_atomic | cur_state | alt_path | access_flags |
                                          pkey_index | min_rnr_timer | path_mig_state;
constexpr std::uint32_t uc_sqd_optional =
    av | cur_state | alt_path | access_flags | pkey_index | path_mig_state;

constexpr std::uint32_t xrc_send_sqd_optional = port | av | timeout | retry_cnt | rnr_retry |
                                                max_qp_rd_atomic | cur_state | alt_path | access_flags |
                                                pkey_index | path_mig_state;
constexpr std::uint32_t xrc_recv_sqd_optional = port | av | timeout | max_dest_rd_atomic | cur_state |
                                                alt_path | access_flags | pkey_index | min_rnr_timer |
                                                path_mig_state;

constexpr Row rows[] = {
    {QpType::rc, QpState::reset, QpState::init, pkey_index | port | access_flags, 0},
    {QpType::uc, QpState::reset, QpState::init, pkey_index | port | access_flags, 0},
    {QpType::ud, QpState::reset, QpState::init, pkey_index | port | qkey, 0},

    {QpType::rc, QpState::init, QpState::init, 0, pkey_index | port | access_flags},
    {QpType::uc, QpState::init, QpState::init, 0, pkey_index | port | access_flags},
    {QpType::ud, QpState::init, QpState::init, 0, pkey_index | port | qkey},

    {QpType::rc, QpState::init, QpState::rtr,
     av | path_mtu | dest_qpn | rq_psn | max_dest_rd_atomic | min_rnr_timer,
     alt_path | access_flags | pkey_index},
    {QpType::uc, QpState::init, QpState::rtr, av | path_mtu | dest_qpn | rq_psn,
     alt_path | access_flags | pkey_index},
    {QpType::ud, QpState::init, QpState::rtr, 0, pkey_index | qkey},

    {QpType::rc, QpState::rtr, QpState::rts, timeout | retry_cnt | rnr_retry | sq_psn | max_qp_rd_atomic,
     rc_rts_optional},
    {QpType::uc, QpState::rtr, QpState::rts, sq_psn, uc_rts_optional},
    {QpType::ud, QpState::rtr, QpState::rts, sq_psn, cur_state | qkey},

    {QpType::rc, QpState::rts, QpState::rts, 0, rc_rts_optional | rate_limit},
    {QpType::uc, QpState::rts, QpState::rts, 0, uc_rts_optional | rate_limit},
    {QpType::ud, QpState::rts, QpState::rts, 0, cur_state | qkey | rate_limit},

    {QpType::rc, QpState::rts, QpState::sqd, 0, en_sqd_async_notify},
    {QpType::uc, QpState::rts, QpState::sqd, 0, en_sqd_async_notify},
    {QpType::ud, QpState::rts, QpState::sqd, 0, en_sqd_async_notify},

    {QpType::rc, QpState::sqd, QpState::sqd, 0, rc_sqd_optional},
    {QpType::uc, QpState::sqd, QpState::sqd, 0, uc_sqd_optional},
    {QpType::ud, QpState::sqd, QpState::sqd, 0, pkey_index | qkey},

    {QpType::rc, QpState::sqd, QpState::rts, 0, rc_rts_optional},
    {QpType::uc, QpState::sqd, QpState::rts, 0, uc_rts_optional},
    {QpType::ud, QpState::sqd, QpState::rts, 0, cur_state | qkey},

    {QpType::uc, QpState::sqe, QpState::rts, 0, cur_state | access_flags},
    {QpType::ud, QpState::sqe, QpState::rts, 0, cur_state | qkey},

    // Raw packets as in the kernel's table: nothing to address or to protect.
    {QpType::raw_packet, QpState::reset, QpState::init, port, 0},
    {QpType::raw_packet, QpState::init, QpState::init, 0, port},
    {QpType::raw_packet, QpState::init, QpState::rtr, 0, 0},
    {QpType::raw_packet, QpState::rtr, QpState::rts, 0, rate_limit},
    {QpType::raw_packet, QpState::rts, QpState::rts, 0, rate_limit},
    {QpType::raw_packet, QpState::rts, QpState::sqd, 0, 0},
    {QpType::raw_packet, QpState::sqd, QpState::sqd, 0, 0},
    {QpType::raw_packet, QpState::sqd, QpState::rts, 0, 0},
    {QpType::raw_packet, QpState::sqe, QpState::rts, 0, 0},

    // XRC as in the kernel's table; the specification's table has no XRC rows.
    {QpType::xrc_send, QpState::reset, QpState::init, pkey_index | port | access_flags, 0},
    {QpType::xrc_recv, QpState::reset, QpState::init, pkey_index | port | access_flags, 0},

    {QpType::xrc_send, QpState::init, QpState::init, 0, pkey_index | port | access_flags},
    {QpType::xrc_recv, QpState::init, QpState::init, 0, pkey_index | port | access_flags},

    {QpType::xrc_send, QpState::init, QpState::rtr, av | path_mtu | dest_qpn | rq_psn,
     alt_path | access_flags | pkey_index},
    {QpType::xrc_recv, QpState::init, QpState::rtr,
     av | path_mtu | dest_qpn | rq_psn | max_dest_rd_atomic | min_rnr_timer,
     alt_path | access_flags | pkey_index},

    {QpType::xrc_send, QpState::rtr, QpState::rts,
     timeout | retry_cnt | rnr_retry | sq_psn | max_qp_rd_atomic, uc_rts_optional},
    {QpType::xrc_recv, QpState::rtr, QpState::rts, timeout | sq_psn, rc_rts_optional},

    {QpType::xrc_send, QpState::rts, QpState::rts, 0, uc_rts_optional | rate_limit},
    {QpType::xrc_recv, QpState::rts, QpState::rts, 0, rc_rts_optional},

    {QpType::xrc_send, QpState::rts, QpState::sqd, 0, en_sqd_async_notify},
    {QpType::xrc_recv, QpState::rts, QpState::sqd, 0, en_sqd_async_notify},

    {QpType::xrc_send, QpState::sqd, QpState::sqd, 0, xrc_send_sqd_optional},
    {QpType::xrc_recv, QpState::sqd, QpState::sqd, 0, xrc_recv_sqd_optional},

    {QpType::xrc_send, QpState::sqd, QpState::rts, 0, uc_rts_optional},
    {QpType::xrc_recv, QpState::sqd, QpState::rts, 0, rc_rts_optional},
};

}  // namespace

std::optional<TransitionAttributes> attributes_of(QpType type, QpState from, QpState to) {
  if (to == QpState::reset || to == QpState::err) return TransitionAttributes{0, ~0u};
  for (const Row& row : rows)
    if (row.type == type && row.from == from && row.to == to)
      return TransitionAttributes{row.required, row.optional};
  return std::nullopt;
}

std::optional<ModifyRefusal> check_modify(QpType type, QpState from, QpState to, std::uint32_t mask) {
  const auto attributes = attributes_of(type, from, to);
  if (!attributes) return ModifyRefusal::no_such_transition;
  if ((mask & attributes->required) != attributes->required) return ModifyRefusal::attribute_missing;
  if (mask & ~(attributes->required | attributes->optional | attr::state))
    return ModifyRefusal::attribute_not_allowed;
  return std::nullopt;
}

}  // namespace weir::rnic
