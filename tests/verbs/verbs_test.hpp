// What the verbs tests share: the device, opened in a runtime directory for the test, objects that destroy
// themselves, and a connected pair of queue pairs.
//
// The library under test is libibverbs.so.1 as a program sees it: only through <infiniband/verbs.h>.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace weir::verbs_test {

// A fresh directory named by WEIR_RUNTIME_DIR; removed when the process ends. Before the first verbs call.
void use_own_runtime_directory();

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    EXPECT_EQ(Destroy(object), 0) << "teardown refused";
  }
};
using Context = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using Pd = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using Mr = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using Cq = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using Srq = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;
using Qp = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using Ah = std::unique_ptr<ibv_ah, Destroyer<ibv_destroy_ah>>;

inline constexpr int all_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

Context open_device();

inline ibv_mr* register_memory(ibv_pd* pd, void* data, std::size_t bytes, int access = all_access) {
  return ibv_reg_mr(pd, data, bytes, access);
}

// Memory with its registration.
class Buffer {
 public:
  Buffer(ibv_pd* pd, std::size_t bytes, int access = all_access)
      : bytes_(bytes), mr_(register_memory(pd, bytes_.data(), bytes, access)) {}
  std::uint8_t* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  std::uint64_t addr() const { return reinterpret_cast<std::uint64_t>(bytes_.data()); }
  std::uint32_t lkey() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  ibv_mr* mr() { return mr_.get(); }
  ibv_sge sge(std::size_t offset, std::size_t length) const {
    return {addr() + offset, static_cast<std::uint32_t>(length), lkey()};
  }
  ibv_sge all() const { return sge(0, size()); }
  void fill(std::uint8_t seed) {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::uint8_t>(seed + i * 7 + (i >> 8));
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  void deregister() { mr_.reset(); }

 private:
  std::vector<std::uint8_t> bytes_;
  Mr mr_;
};

struct QpOptions {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap{
      .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
  ibv_srq* srq = nullptr;
  int sq_sig_all = 0;
};
ibv_qp_init_attr init_attr(ibv_cq* cq, const QpOptions& = {});

// Attributes for the usual transitions to RTS.
struct Step {
  ibv_qp_attr attr;
  int mask;
};
Step to_init(ibv_qp_type type);
Step to_rtr(ibv_qp_type type, std::uint32_t destination, const ibv_gid& gid);
// How long a requester waits for a peer that does not answer.
struct Patience {
  std::uint8_t timeout = 17;  // 0.5 s a try: no timer fires on a busy machine where none should
  std::uint8_t retry_cnt = 7;
};
Step to_rts(ibv_qp_type type, Patience = {});
int modify(ibv_qp* qp, Step step);
int bring_up(ibv_qp* qp, std::uint32_t destination, Patience = {});

ibv_gid first_gid(ibv_context* context);

// One request each; the wr_id is in the request.
ibv_send_wr send_wr(std::uint64_t id, ibv_sge& sge, ibv_wr_opcode opcode = IBV_WR_SEND,
                    unsigned flags = IBV_SEND_SIGNALED);
int post(ibv_qp* qp, ibv_send_wr wr);
int post_recv(ibv_qp* qp, std::uint64_t id, std::optional<ibv_sge> sge = {});

// Polls until there is one; nullopt after a minute (a failure that would otherwise hang).
std::optional<ibv_wc> wait_for(ibv_cq* cq);
std::optional<ibv_wc> poll_once(ibv_cq* cq);
bool readable(int fd, int limit_ms = 0);

testing::AssertionResult completed(const std::optional<ibv_wc>& wc, std::uint64_t id,
                                   ibv_wc_status status = IBV_WC_SUCCESS);

// The device, a domain, one CQ, and two queue pairs connected to each other.
class VerbsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { use_own_runtime_directory(); }
  VerbsTest() : context(open_device()), pd(ibv_alloc_pd(context.get())) {}

  Cq make_cq(int cqe = 128, ibv_comp_channel* channel = nullptr, void* cookie = nullptr) {
    return Cq(ibv_create_cq(context.get(), cqe, cookie, channel, 0));
  }
  Qp make_qp(ibv_cq* cq, const QpOptions& options = {}) {
    ibv_qp_init_attr init = init_attr(cq, options);
    return Qp(ibv_create_qp(pd.get(), &init));
  }
  static void connect(ibv_qp* a, ibv_qp* b) {
    ASSERT_EQ(bring_up(a, b->qp_num), 0);
    ASSERT_EQ(bring_up(b, a->qp_num), 0);
  }

  Context context;
  Pd pd;
};

class ConnectedTest : public VerbsTest {
 protected:
  ConnectedTest() : a_cq(make_cq()), b_cq(make_cq()), a(make_qp(a_cq.get())), b(make_qp(b_cq.get())) {
    connect(a.get(), b.get());
  }
  Cq a_cq, b_cq;
  Qp a, b;
};

}  // namespace weir::verbs_test
