// Two connected queue pairs of one process, as small programs use them, and what is needed to do it wrong.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace weir::check_test {

inline constexpr unsigned all_rights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct PairOptions {
  ibv_qp_type type = IBV_QPT_RC;
  int cqe = 64;
  unsigned max_wr = 8;
  unsigned queue_pair_rights = all_rights;
  bool with_channel = false;
  std::uint8_t max_rd_atomic = 4, max_dest_rd_atomic = 4;
  std::uint8_t timeout = 14, retry_cnt = 7, rnr_retry = 7;
  bool target_stays_in_init = false, own_stays_in_init = false;
};

// Ends the program with status 3: the test itself is wrong.
void must(bool fact, const char* what);

class Pair {
 public:
  explicit Pair(const PairOptions& = {});
  ~Pair();  // destroys what is left, in the right order
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  ibv_mr* register_memory(void* at, std::size_t bytes, unsigned rights = all_rights);
  // Forgets the region: the program deregisters it itself.
  void give_up(const ibv_mr*);

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq *cq = nullptr, *target_cq = nullptr;
  ibv_qp *qp = nullptr, *target = nullptr;

  // The memory of both, all rights.
  static constexpr std::size_t bytes = 4096;
  alignas(4096) std::byte memory[bytes]{};
  ibv_mr* region = nullptr;

 private:
  void create(const PairOptions&);
  void connect(const PairOptions&);
  ibv_mr* regions_[8]{};
};

ibv_sge piece(const ibv_mr* region, std::size_t offset, std::size_t bytes);
ibv_sge piece(const void* at, std::size_t bytes, std::uint32_t lkey);
struct Request {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = IBV_SEND_SIGNALED;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
};
Request write_to(const ibv_mr* region, std::size_t offset, unsigned flags = IBV_SEND_SIGNALED);

// Waits for one completion and returns its status.
ibv_wc_status wait_for(ibv_cq* cq);

// Runs that once the checker has found something: what the program, being wrong, would wait for without end.
void when_found(std::function<void()> what);

// Inline, so that the post is in the line that calls it.
[[gnu::always_inline]] inline int post(ibv_qp* qp, const Request& request, ibv_sge sge) {
  ibv_send_wr wr{};
  wr.wr_id = 7;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = request.opcode;
  wr.send_flags = request.flags;
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = request.remote_addr;
    wr.wr.atomic.rkey = request.rkey;
  } else if (qp->qp_type != IBV_QPT_UD) {
    wr.wr.rdma.remote_addr = request.remote_addr;
    wr.wr.rdma.rkey = request.rkey;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}
[[gnu::always_inline]] inline int post_receive(ibv_qp* qp, ibv_sge sge) {
  ibv_recv_wr wr{};
  wr.wr_id = 8;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

}  // namespace weir::check_test
