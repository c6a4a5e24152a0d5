#include "tests/check/pair.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#undef ibv_reg_mr

namespace weir::check_test {
namespace {

std::atomic<bool> found{false};

}  // namespace

void must(bool fact, const char* what) {
  if (fact) return;
  std::fprintf(stderr, "the test is wrong: %s\n", what);
  ::_exit(3);
}

Pair::Pair(const PairOptions& options) {
  create(options);
  connect(options);
}

void Pair::create(const PairOptions& options) {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  must(context != nullptr, "no device");
  pd = ibv_alloc_pd(context);
  region = register_memory(memory, bytes);
  if (options.with_channel) channel = ibv_create_comp_channel(context);
  cq = ibv_create_cq(context, options.cqe, nullptr, channel, 0);
  target_cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
  const auto make = [&](ibv_cq* own) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = own;
    init.cap = {options.max_wr, options.max_wr, 2, 2, 64};
    init.qp_type = options.type;
    return ibv_create_qp(pd, &init);
  };
  qp = make(cq);
  target = make(target_cq);
  must(qp != nullptr && target != nullptr, "no queue pairs");
}

void Pair::connect(const PairOptions& options) {
  const bool ud = options.type == IBV_QPT_UD;
  for (ibv_qp* const one : {qp, target}) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = 1;
    attr.qp_access_flags = options.queue_pair_rights;
    must(ibv_modify_qp(
             one, &attr,
             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0,
         "INIT");
  }
  ibv_gid gid{};
  ibv_query_gid(context, 1, 0, &gid);
  for (ibv_qp* const one : {target, qp}) {
    if (one == target ? options.target_stays_in_init : options.own_stays_in_init) continue;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = (one == qp ? target : qp)->qp_num;
    attr.max_dest_rd_atomic = options.max_dest_rd_atomic;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = gid;
    attr.ah_attr.grh.hop_limit = 1;
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    must(
        ibv_modify_qp(one, &attr,
                      IBV_QP_STATE | (ud ? 0 : connected) | (options.type == IBV_QPT_RC ? reliable : 0)) == 0,
        "RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = options.timeout;
    attr.retry_cnt = options.retry_cnt;
    attr.rnr_retry = options.rnr_retry;
    attr.max_rd_atomic = options.max_rd_atomic;
    const int requester = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    must(ibv_modify_qp(one, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | (options.type == IBV_QPT_RC ? requester : 0)) == 0,
         "RTS");
  }
}

Pair::~Pair() {
  for (ibv_qp* const one : {qp, target})
    if (one != nullptr) ibv_destroy_qp(one);
  for (ibv_cq* const one : {cq, target_cq})
    if (one != nullptr) ibv_destroy_cq(one);
  if (channel != nullptr) ibv_destroy_comp_channel(channel);
  for (ibv_mr* const one : regions_)
    if (one != nullptr) ibv_dereg_mr(one);
  if (pd != nullptr) ibv_dealloc_pd(pd);
  ibv_close_device(context);
}

ibv_mr* Pair::register_memory(void* at, std::size_t length, unsigned rights) {
  ibv_mr* const made = ibv_reg_mr(pd, at, length, static_cast<int>(rights));
  must(made != nullptr, "no region");
  *std::ranges::find(regions_, static_cast<ibv_mr*>(nullptr)) = made;
  return made;
}

void Pair::give_up(const ibv_mr* one) { *std::ranges::find(regions_, one) = nullptr; }

ibv_sge piece(const ibv_mr* region, std::size_t offset, std::size_t bytes) {
  return {reinterpret_cast<std::uint64_t>(region->addr) + offset, static_cast<std::uint32_t>(bytes),
          region->lkey};
}

ibv_sge piece(const void* at, std::size_t bytes, std::uint32_t lkey) {
  return {reinterpret_cast<std::uint64_t>(at), static_cast<std::uint32_t>(bytes), lkey};
}

Request write_to(const ibv_mr* region, std::size_t offset, unsigned flags) {
  return {.opcode = IBV_WR_RDMA_WRITE,
          .flags = flags,
          .remote_addr = reinterpret_cast<std::uint64_t>(region->addr) + offset,
          .rkey = region->rkey};
}

ibv_wc_status wait_for(ibv_cq* cq) {
  ibv_wc wc{};
  int got = 0;
  while ((got = ibv_poll_cq(cq, 1, &wc)) == 0) continue;
  must(got == 1, "poll failed");
  return wc.status;
}

void when_found(std::function<void()> what) {
  std::thread([what = std::move(what)] {
    found.wait(false);
    what();
  }).detach();
}

}  // namespace weir::check_test

// The checker's name for breakpoints: it calls this one, which stands in front of its own.
extern "C" [[gnu::visibility("default")]] void weir_check_report() {
  weir::check_test::found = true;
  weir::check_test::found.notify_all();
}
