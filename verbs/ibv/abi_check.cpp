// Posting, polling and modifying translate by a cast, so rnic/types.hpp must use the numbers of
// <infiniband/verbs.h>. This file contains only assertions: if a number differs, it does not compile.
#include <infiniband/verbs.h>

#include "rnic/types.hpp"

namespace weir::verbs {
namespace {

template <class Ours>
constexpr bool same_number(Ours ours, int theirs) {
  return static_cast<int>(ours) == theirs;
}

static_assert(same_number(rnic::QpState::reset, IBV_QPS_RESET) &&
              same_number(rnic::QpState::init, IBV_QPS_INIT) &&
              same_number(rnic::QpState::rtr, IBV_QPS_RTR) && same_number(rnic::QpState::rts, IBV_QPS_RTS) &&
              same_number(rnic::QpState::sqd, IBV_QPS_SQD) && same_number(rnic::QpState::sqe, IBV_QPS_SQE) &&
              same_number(rnic::QpState::err, IBV_QPS_ERR));

static_assert(same_number(rnic::QpType::rc, IBV_QPT_RC) && same_number(rnic::QpType::uc, IBV_QPT_UC) &&
              same_number(rnic::QpType::ud, IBV_QPT_UD) &&
              same_number(rnic::QpType::raw_packet, IBV_QPT_RAW_PACKET) &&
              same_number(rnic::QpType::xrc_send, IBV_QPT_XRC_SEND) &&
              same_number(rnic::QpType::xrc_recv, IBV_QPT_XRC_RECV));

static_assert(same_number(rnic::SendOpcode::rdma_write, IBV_WR_RDMA_WRITE) &&
              same_number(rnic::SendOpcode::rdma_write_with_imm, IBV_WR_RDMA_WRITE_WITH_IMM) &&
              same_number(rnic::SendOpcode::send, IBV_WR_SEND) &&
              same_number(rnic::SendOpcode::send_with_imm, IBV_WR_SEND_WITH_IMM) &&
              same_number(rnic::SendOpcode::rdma_read, IBV_WR_RDMA_READ) &&
              same_number(rnic::SendOpcode::compare_and_swap, IBV_WR_ATOMIC_CMP_AND_SWP) &&
              same_number(rnic::SendOpcode::fetch_and_add, IBV_WR_ATOMIC_FETCH_AND_ADD) &&
              same_number(rnic::SendOpcode::local_invalidate, IBV_WR_LOCAL_INV) &&
              same_number(rnic::SendOpcode::bind_window, IBV_WR_BIND_MW) &&
              same_number(rnic::SendOpcode::send_with_invalidate, IBV_WR_SEND_WITH_INV) &&
              same_number(rnic::SendOpcode::atomic_write, IBV_WR_ATOMIC_WRITE));

static_assert(same_number(rnic::WcOpcode::send, IBV_WC_SEND) &&
              same_number(rnic::WcOpcode::rdma_write, IBV_WC_RDMA_WRITE) &&
              same_number(rnic::WcOpcode::rdma_read, IBV_WC_RDMA_READ) &&
              same_number(rnic::WcOpcode::compare_and_swap, IBV_WC_COMP_SWAP) &&
              same_number(rnic::WcOpcode::fetch_and_add, IBV_WC_FETCH_ADD) &&
              same_number(rnic::WcOpcode::bind_window, IBV_WC_BIND_MW) &&
              same_number(rnic::WcOpcode::local_invalidate, IBV_WC_LOCAL_INV) &&
              same_number(rnic::WcOpcode::atomic_write, IBV_WC_ATOMIC_WRITE) &&
              same_number(rnic::WcOpcode::recv, IBV_WC_RECV) &&
              same_number(rnic::WcOpcode::recv_rdma_with_imm, IBV_WC_RECV_RDMA_WITH_IMM));

static_assert(same_number(rnic::WcStatus::success, IBV_WC_SUCCESS) &&
              same_number(rnic::WcStatus::loc_len_err, IBV_WC_LOC_LEN_ERR) &&
              same_number(rnic::WcStatus::loc_qp_op_err, IBV_WC_LOC_QP_OP_ERR) &&
              same_number(rnic::WcStatus::loc_prot_err, IBV_WC_LOC_PROT_ERR) &&
              same_number(rnic::WcStatus::wr_flush_err, IBV_WC_WR_FLUSH_ERR) &&
              same_number(rnic::WcStatus::mw_bind_err, IBV_WC_MW_BIND_ERR) &&
              same_number(rnic::WcStatus::rem_inv_req_err, IBV_WC_REM_INV_REQ_ERR) &&
              same_number(rnic::WcStatus::rem_access_err, IBV_WC_REM_ACCESS_ERR) &&
              same_number(rnic::WcStatus::rem_op_err, IBV_WC_REM_OP_ERR) &&
              same_number(rnic::WcStatus::retry_exc_err, IBV_WC_RETRY_EXC_ERR) &&
              same_number(rnic::WcStatus::rnr_retry_exc_err, IBV_WC_RNR_RETRY_EXC_ERR));

static_assert(same_number(rnic::access::local_write, IBV_ACCESS_LOCAL_WRITE) &&
              same_number(rnic::access::remote_write, IBV_ACCESS_REMOTE_WRITE) &&
              same_number(rnic::access::remote_read, IBV_ACCESS_REMOTE_READ) &&
              same_number(rnic::access::remote_atomic, IBV_ACCESS_REMOTE_ATOMIC) &&
              same_number(rnic::access::mw_bind, IBV_ACCESS_MW_BIND) &&
              same_number(rnic::access::zero_based, IBV_ACCESS_ZERO_BASED) &&
              same_number(rnic::access::on_demand, IBV_ACCESS_ON_DEMAND));

static_assert(same_number(rnic::send_flag::fence, IBV_SEND_FENCE) &&
              same_number(rnic::send_flag::signaled, IBV_SEND_SIGNALED) &&
              same_number(rnic::send_flag::solicited, IBV_SEND_SOLICITED) &&
              same_number(rnic::send_flag::inline_data, IBV_SEND_INLINE));

}  // namespace
}  // namespace weir::verbs
