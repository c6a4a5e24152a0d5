// Connections of each type of queue pair through rdma_cm, as rdma_create_ep makes them: both sides in one
// process.
#include <future>

#include "tests/cm/cm_fixture.hpp"

namespace weir::cm {
namespace {

struct Endpoint {
  explicit Endpoint(ibv_qp_type type, const char* port, int flags) {
    rdma_addrinfo hints{};
    hints.ai_flags = flags;
    hints.ai_qp_type = type;
    hints.ai_port_space = RDMA_PS_IB;
    rdma_addrinfo* found = nullptr;
    EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", port, &hints, &found), 0);
    ibv_qp_init_attr attr{};
    attr.cap = {
        .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    attr.sq_sig_all = 1;
    EXPECT_EQ(rdma_create_ep(&id, found, nullptr, &attr), 0) << std::strerror(errno);
    rdma_freeaddrinfo(found);
  }
  explicit Endpoint(rdma_cm_id* made) : id(made) {}
  ~Endpoint() {
    if (id != nullptr) rdma_destroy_ep(id);
  }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  std::string port() const { return std::to_string(ntohs(rdma_get_src_port(id))); }

  rdma_cm_id* id = nullptr;
};

struct Listener : Endpoint {
  explicit Listener(ibv_qp_type type) : Endpoint(type, "0", RAI_PASSIVE) {
    EXPECT_EQ(rdma_listen(id, 4), 0) << std::strerror(errno);
  }
};

class EachType : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(Types, EachType, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& param_info) { return param_info.param == IBV_QPT_UC ? "uc" : "rc"; });

TEST_P(EachType, carries_messages_both_ways_and_is_disconnected) {
  const Listener listener(GetParam());
  const Endpoint client(GetParam(), listener.port().c_str(), 0);
  EXPECT_EQ(client.id->qp->qp_type, GetParam());
  auto accepted = std::async(std::launch::async, [&] {
    rdma_cm_id* made = nullptr;
    EXPECT_EQ(rdma_get_request(listener.id, &made), 0) << std::strerror(errno);
    EXPECT_EQ(made->qp->qp_type, GetParam());
    EXPECT_EQ(rdma_accept(made, nullptr), 0) << std::strerror(errno);
    return made;
  });
  ASSERT_EQ(rdma_connect(client.id, nullptr), 0) << std::strerror(errno);
  const Endpoint server(accepted.get());
  std::array<char, 5000> outgoing{}, incoming{};
  for (const auto& [from, to] : {std::pair{client.id, server.id}, std::pair{server.id, client.id}}) {
    ibv_mr* out = rdma_reg_msgs(from, outgoing.data(), outgoing.size());
    ibv_mr* in = rdma_reg_msgs(to, incoming.data(), incoming.size());
    ASSERT_TRUE(out != nullptr && in != nullptr);
    incoming.fill(0);
    outgoing.fill('x');
    ASSERT_EQ(rdma_post_recv(to, nullptr, incoming.data(), incoming.size(), in), 0);
    ASSERT_EQ(rdma_post_send(from, nullptr, outgoing.data(), outgoing.size(), out, 0), 0);
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_recv_comp(to, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, outgoing.size());
    ASSERT_EQ(rdma_get_send_comp(from, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(incoming, outgoing);
    rdma_dereg_mr(out);
    rdma_dereg_mr(in);
  }
  EXPECT_EQ(rdma_disconnect(client.id), 0) << std::strerror(errno);
}

TEST_P(EachType, is_not_connected_to_a_listener_for_another) {
  const Listener listener(GetParam() == IBV_QPT_UC ? IBV_QPT_RC : IBV_QPT_UC);
  const Endpoint client(GetParam(), listener.port().c_str(), 0);
  EXPECT_EQ(rdma_connect(client.id, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

}  // namespace
}  // namespace weir::cm
