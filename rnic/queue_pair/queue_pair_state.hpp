// The queue pair state machine: which transitions exist and which attributes each needs or may have, as data
// (IBA volume 1, section 10.3.1 and table 91, as ibv_modify_qp(3) lists them).
#pragma once

#include <cstdint>
#include <optional>

#include "rnic/types.hpp"

namespace weir::rnic {

// Attribute bits carry the values of enum ibv_qp_attr_mask.
namespace attr {
inline constexpr std::uint32_t state = 1 << 0, cur_state = 1 << 1, en_sqd_async_notify = 1 << 2,
                               access_flags = 1 << 3, pkey_index = 1 << 4, port = 1 << 5, qkey = 1 << 6,
                               av = 1 << 7, path_mtu = 1 << 8, timeout = 1 << 9, retry_cnt = 1 << 10,
                               rnr_retry = 1 << 11, rq_psn = 1 << 12, max_qp_rd_atomic = 1 << 13,
                               alt_path = 1 << 14, min_rnr_timer = 1 << 15, sq_psn = 1 << 16,
                               max_dest_rd_atomic = 1 << 17, path_mig_state = 1 << 18, cap = 1 << 19,
                               dest_qpn = 1 << 20, rate_limit = 1 << 25;
}

// The attributes of a transition; nullopt: there is no such transition.
struct TransitionAttributes {
  std::uint32_t required = 0, optional = 0;
};
std::optional<TransitionAttributes> attributes_of(QpType, QpState from, QpState to);

// Why a modify is refused; nullopt: it is allowed. `mask` includes attr::state only if the caller set it.
enum class ModifyRefusal : std::uint8_t { no_such_transition, attribute_missing, attribute_not_allowed };
std::optional<ModifyRefusal> check_modify(QpType, QpState from, QpState to, std::uint32_t mask);

}  // namespace weir::rnic
