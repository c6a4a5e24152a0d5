#include "verbs_test.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/scratch_directory.hpp"

namespace weir::verbs_test {
namespace {
constexpr std::uint32_t first_psn = 11;  // packets need the same one at both ends; shared memory has none
}

void use_own_runtime_directory() {
  // Made before the library's own handlers at exit, so it is removed after them.
  static const test::ScratchDirectory directory;
  static const int told = ::setenv("WEIR_RUNTIME_DIR", directory.path().c_str(), 1);
  // Independent of the machine's interfaces.
  static const int wide = ::setenv("WEIR_MTU", "4096", 0);
  (void)told, (void)wide;
}

Context open_device() {
  ibv_device** list = ibv_get_device_list(nullptr);
  Context context(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  if (!context) std::abort();
  return context;
}

ibv_qp_init_attr init_attr(ibv_cq* cq, const QpOptions& options) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.srq = options.srq;
  init.cap = options.cap;
  init.qp_type = options.type;
  init.sq_sig_all = options.sq_sig_all;
  return init;
}

Step to_init(ibv_qp_type type) {
  Step step{};
  step.attr.qp_state = IBV_QPS_INIT;
  step.attr.port_num = 1;
  step.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (type == IBV_QPT_UD) {
    step.attr.qkey = 0x1111;
    step.mask |= IBV_QP_QKEY;
  } else {
    step.attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    step.mask |= IBV_QP_ACCESS_FLAGS;
  }
  return step;
}

Step to_rtr(ibv_qp_type type, std::uint32_t destination, const ibv_gid& gid) {
  Step step{};
  step.attr.qp_state = IBV_QPS_RTR;
  step.mask = IBV_QP_STATE;
  if (type == IBV_QPT_UD) return step;
  step.attr.path_mtu = IBV_MTU_1024;
  step.attr.dest_qp_num = destination;
  step.attr.rq_psn = first_psn;
  step.attr.ah_attr.is_global = 1;
  step.attr.ah_attr.grh.dgid = gid;
  step.attr.ah_attr.grh.hop_limit = 64;
  step.attr.ah_attr.port_num = 1;
  step.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC) {
    step.attr.max_dest_rd_atomic = 4;
    step.attr.min_rnr_timer = 12;
    step.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  return step;
}

Step to_rts(ibv_qp_type type, Patience patience) {
  Step step{};
  step.attr.qp_state = IBV_QPS_RTS;
  step.attr.sq_psn = first_psn;
  step.mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC) {
    step.attr.timeout = patience.timeout;
    step.attr.retry_cnt = patience.retry_cnt;
    step.attr.rnr_retry = 7;
    step.attr.max_rd_atomic = 4;
    step.mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return step;
}

int modify(ibv_qp* qp, Step step) { return ibv_modify_qp(qp, &step.attr, step.mask); }

int bring_up(ibv_qp* qp, std::uint32_t destination, Patience patience) {
  if (const int error = modify(qp, to_init(qp->qp_type))) return error;
  if (const int error = modify(qp, to_rtr(qp->qp_type, destination, first_gid(qp->context)))) return error;
  return modify(qp, to_rts(qp->qp_type, patience));
}

ibv_gid first_gid(ibv_context* context) {
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
  return gid;
}

ibv_send_wr send_wr(std::uint64_t id, ibv_sge& sge, ibv_wr_opcode opcode, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = flags;
  return wr;
}

int post(ibv_qp* qp, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

int post_recv(ibv_qp* qp, std::uint64_t id, std::optional<ibv_sge> sge) {
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = sge ? &*sge : nullptr;
  wr.num_sge = sge ? 1 : 0;
  return ibv_post_recv(qp, &wr, &bad);
}

std::optional<ibv_wc> poll_once(ibv_cq* cq) {
  ibv_wc wc;
  return ibv_poll_cq(cq, 1, &wc) == 1 ? std::optional(wc) : std::nullopt;
}

std::optional<ibv_wc> wait_for(ibv_cq* cq) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    if (auto wc = poll_once(cq)) return wc;
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < give_up);
  return std::nullopt;
}

bool readable(int fd, int limit_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, limit_ms) == 1 && (entry.revents & POLLIN);
}

testing::AssertionResult completed(const std::optional<ibv_wc>& wc, std::uint64_t id, ibv_wc_status status) {
  if (!wc) return testing::AssertionFailure() << "no completion; wanted wr_id " << id;
  if (wc->wr_id != id || wc->status != status)
    return testing::AssertionFailure() << "wr_id " << wc->wr_id << ": " << ibv_wc_status_str(wc->status)
                                       << "; wanted wr_id " << id << ": " << ibv_wc_status_str(status);
  return testing::AssertionSuccess();
}

}  // namespace weir::verbs_test
