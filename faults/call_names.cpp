#include "faults/call_names.hpp"

#include <algorithm>
#include <cerrno>

namespace weir::faults {
namespace {

constexpr CallName known_calls[] = {
    {"ibv_alloc_pd", Call::alloc_pd},       {"ibv_create_cq", Call::create_cq},
    {"ibv_create_qp", Call::create_qp},     {"ibv_modify_qp", Call::modify_qp},
    {"ibv_post_recv", Call::post_recv},     {"ibv_post_send", Call::post_send},
    {"ibv_reg_mr", Call::reg_mr},           {"ibv_start_poll", Call::start_poll},
    {"ibv_wr_complete", Call::wr_complete},
};

constexpr NumberName errors[] = {
    {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EBUSY", EBUSY},   {"EFAULT", EFAULT},
    {"EINVAL", EINVAL}, {"EIO", EIO},       {"EMFILE", EMFILE}, {"ENODEV", ENODEV},
    {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}, {"EPERM", EPERM},   {"ETIMEDOUT", ETIMEDOUT},
};

// As <infiniband/verbs.h> numbers them, which this layer may not include.
constexpr NumberName statuses[] = {
    {"IBV_WC_LOC_LEN_ERR", 1},    {"IBV_WC_LOC_QP_OP_ERR", 2},   {"IBV_WC_LOC_PROT_ERR", 4},
    {"IBV_WC_WR_FLUSH_ERR", 5},   {"IBV_WC_MW_BIND_ERR", 6},     {"IBV_WC_BAD_RESP_ERR", 7},
    {"IBV_WC_LOC_ACCESS_ERR", 8}, {"IBV_WC_REM_INV_REQ_ERR", 9}, {"IBV_WC_REM_ACCESS_ERR", 10},
    {"IBV_WC_REM_OP_ERR", 11},    {"IBV_WC_RETRY_EXC_ERR", 12},  {"IBV_WC_RNR_RETRY_EXC_ERR", 13},
    {"IBV_WC_REM_ABORT_ERR", 16}, {"IBV_WC_FATAL_ERR", 19},      {"IBV_WC_RESP_TIMEOUT_ERR", 20},
    {"IBV_WC_GENERAL_ERR", 21},
};

}  // namespace

std::span<const CallName> call_names() { return known_calls; }
std::span<const NumberName> error_names() { return errors; }
std::span<const NumberName> status_names() { return statuses; }

std::string_view name_of(Call call) {
  const auto found = std::ranges::find(known_calls, call, &CallName::call);
  return found != std::end(known_calls) ? found->name : "completion";
}

}  // namespace weir::faults
