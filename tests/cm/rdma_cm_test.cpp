// librdmacm as an application sees it, both sides in one process; cm_process_test.cpp uses two processes.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "tests/cm/cm_fixture.hpp"

namespace weir::cm {
namespace {

std::string text(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

// A connected pair, each end with its channel and queue pair.
class Connected : public testing::Test {
 protected:
  void connect(std::string_view request = {}, std::string_view answer = {}) {
    client_ = make_id(client_events_);
    resolve(client_, client_events_, port_of(listener_));
    make_qp(client_);
    auto asks = parameters(request);
    ASSERT_EQ(rdma_connect(client_.get(), &asks), 0) << std::strerror(errno);
    server_ = IdRef(server_events_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
    make_qp(server_);
    auto answers = parameters(answer);
    ASSERT_EQ(rdma_accept(server_.get(), &answers), 0) << std::strerror(errno);
    client_events_.expect(RDMA_CM_EVENT_ESTABLISHED);
    server_events_.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  Events server_events_, client_events_;
  IdRef listener_ = make_listener(server_events_);
  IdRef client_, server_;
};

class RdmaCm : public testing::Test {
 protected:
  Events server_, client_;
};

TEST_F(RdmaCm, the_request_tells_who_asks_for_what) {
  int tag = 0;
  const IdRef listener = make_listener(server_, RDMA_PS_TCP, 8, &tag);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  auto asks = parameters("who is there?");
  asks.responder_resources = 3;
  asks.initiator_depth = 2;
  asks.rnr_retry_count = 5;
  asks.retry_count = 6;
  asks.flow_control = 1;
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  auto request = server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef server(request->id);
  EXPECT_EQ(request->listen_id, listener.get());
  EXPECT_NE(request->id, listener.get());
  EXPECT_EQ(request->id->context, &tag);
  EXPECT_EQ(request->id->verbs, client->verbs);
  EXPECT_EQ(request->id->port_num, 1);
  EXPECT_EQ(request->id->ps, RDMA_PS_TCP);
  EXPECT_EQ(rdma_get_dst_port(request->id), rdma_get_src_port(client.get()));
  EXPECT_EQ(rdma_get_src_port(request->id), rdma_get_dst_port(client.get()));
  const auto& conn = request->param.conn;
  EXPECT_EQ(conn.private_data_len, 56);
  EXPECT_EQ(text(conn.private_data, 14), std::string("who is there?\0", 14));
  EXPECT_EQ(conn.responder_resources, 2);  // its depth asks for our resources
  EXPECT_EQ(conn.initiator_depth, 3);
  EXPECT_EQ(conn.rnr_retry_count, 5);
  EXPECT_EQ(conn.retry_count, 6);
  EXPECT_EQ(conn.flow_control, 1);
  EXPECT_EQ(conn.qp_num, client->qp->qp_num);
  request.reset();
}

TEST_F(RdmaCm, the_answer_tells_the_private_data_and_the_queue_pair) {
  const IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  auto asks = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  make_qp(server);
  auto answers = parameters("come in");
  ASSERT_EQ(rdma_accept(server.get(), &answers), 0) << std::strerror(errno);
  {
    const auto established = client_.expect(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(established->id, client.get());
    EXPECT_EQ(established->param.conn.private_data_len, 196);
    EXPECT_EQ(text(established->param.conn.private_data, 8), std::string("come in\0", 8));
    EXPECT_EQ(established->param.conn.qp_num, server->qp->qp_num);
  }
  EXPECT_EQ(server_.expect(RDMA_CM_EVENT_ESTABLISHED)->id, server.get());
  EXPECT_EQ(client->qp->state, IBV_QPS_RTS);
  EXPECT_EQ(server->qp->state, IBV_QPS_RTS);
}

TEST_F(Connected, carries_messages_both_ways) {
  connect();
  std::array<char, 64> outgoing{}, incoming{};
  ibv_mr* out = rdma_reg_msgs(client_.get(), outgoing.data(), outgoing.size());
  ibv_mr* in = rdma_reg_msgs(server_.get(), incoming.data(), incoming.size());
  ASSERT_TRUE(out != nullptr && in != nullptr);
  ASSERT_EQ(rdma_post_recv(server_.get(), nullptr, incoming.data(), incoming.size(), in), 0);
  std::strcpy(outgoing.data(), "over RDMA");
  ASSERT_EQ(rdma_post_send(client_.get(), nullptr, outgoing.data(), outgoing.size(), out, 0), 0);
  ibv_wc wc{};
  // These block on the completion channels that rdma_create_qp made.
  EXPECT_EQ(rdma_get_recv_comp(server_.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(rdma_get_send_comp(client_.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(incoming.data(), "over RDMA");
  rdma_dereg_mr(out);
  rdma_dereg_mr(in);
}

TEST_F(Connected, disconnecting_tells_both_and_flushes_the_queue_pair) {
  connect();
  std::array<char, 64> incoming{};
  ibv_mr* in = rdma_reg_msgs(client_.get(), incoming.data(), incoming.size());
  ASSERT_EQ(rdma_post_recv(client_.get(), nullptr, incoming.data(), incoming.size(), in), 0);
  ASSERT_EQ(rdma_disconnect(client_.get()), 0);
  ibv_wc wc{};
  EXPECT_EQ(rdma_get_recv_comp(client_.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(client_events_.expect(RDMA_CM_EVENT_DISCONNECTED)->id, client_.get());
  EXPECT_EQ(server_events_.expect(RDMA_CM_EVENT_DISCONNECTED)->id, server_.get());
  EXPECT_EQ(rdma_disconnect(server_.get()), 0);  // the answer, as every application gives it
  EXPECT_EQ(client_events_.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT)->id, client_.get());
  EXPECT_EQ(server_events_.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT)->id, server_.get());
  for (const IdRef* id : {&client_, &server_})
    EXPECT_EQ(rdma_disconnect(id->get()), 0);  // late, and no error
  rdma_dereg_mr(in);
}

TEST_F(Connected, destroying_one_end_disconnects_the_other) {
  connect();
  client_.reset();
  EXPECT_EQ(server_events_.expect(RDMA_CM_EVENT_DISCONNECTED)->id, server_.get());
}

TEST_F(Connected, both_ends_may_disconnect_at_once) {
  for (int round = 0; round < 20; ++round) {
    connect();
    auto other = std::async(std::launch::async, [&] { return rdma_disconnect(server_.get()); });
    EXPECT_EQ(rdma_disconnect(client_.get()), 0);
    EXPECT_EQ(other.get(), 0);
    client_events_.expect(RDMA_CM_EVENT_DISCONNECTED);
    server_events_.expect(RDMA_CM_EVENT_DISCONNECTED);
    client_.reset();
    server_.reset();
  }
}

TEST_F(RdmaCm, the_channel_is_pollable_and_honours_nonblock) {
  ASSERT_EQ(::fcntl(client_.get()->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(client_.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  const IdRef id = make_id(client_);
  auto to = loopback(1);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, as_address(to), 100), 0);
  EXPECT_TRUE(client_.pending());
  client_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_FALSE(client_.pending());
}

TEST_F(RdmaCm, destroying_an_identifier_waits_for_its_events_to_be_acknowledged) {
  IdRef id = make_id(client_);
  auto to = loopback(1);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, as_address(to), 100), 0);
  auto event = client_.next();
  std::atomic<bool> acknowledged = false;
  auto destroyed = std::async(std::launch::async, [&] {
    id.reset();
    return acknowledged.load();
  });
  acknowledged = true;
  event.reset();
  EXPECT_TRUE(destroyed.get());
}

TEST_F(RdmaCm, destroying_an_identifier_takes_its_queued_events_along) {
  IdRef id = make_id(client_);
  auto to = loopback(1);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, as_address(to), 100), 0);
  ASSERT_TRUE(client_.pending());
  id.reset();
  EXPECT_FALSE(client_.pending());
}

TEST_F(RdmaCm, a_queue_pair_of_the_applications_own_is_brought_up_by_rdma_establish) {
  const IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  auto asks = parameters();
  asks.qp_num = 0x1234;
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  auto answers = parameters();
  answers.qp_num = 0x4321;
  ASSERT_EQ(rdma_accept(server.get(), &answers), 0) << std::strerror(errno);
  EXPECT_EQ(client_.expect(RDMA_CM_EVENT_CONNECT_RESPONSE)->param.conn.qp_num, 0x4321u);
  EXPECT_FALSE(server_.pending());
  for (const auto& [id, peer] : {std::pair(client.get(), 0x4321u), std::pair(server.get(), 0x1234u)}) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
    EXPECT_EQ(attr.dest_qp_num, peer);
    EXPECT_TRUE(mask & IBV_QP_AV);
    EXPECT_EQ(attr.ah_attr.is_global, 1);
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
    EXPECT_EQ(attr.rnr_retry, 7);
  }
  ASSERT_EQ(rdma_establish(client.get()), 0);
  server_.expect(RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(RdmaCm, traffic_before_the_confirmation_can_establish_the_connection) {
  const IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_EQ(rdma_accept(server.get(), nullptr), 0);
  ASSERT_EQ(rdma_notify(server.get(), IBV_EVENT_COMM_EST), 0);
  server_.expect(RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(RdmaCm, a_datagram_service_is_looked_up) {
  const IdRef listener = make_listener(server_, RDMA_PS_UDP);
  const IdRef client = make_id(client_, RDMA_PS_UDP);
  EXPECT_EQ(client->qp_type, IBV_QPT_UD);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  EXPECT_EQ(client->qp->state, IBV_QPS_RTS);
  auto asks = parameters("lookup");
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  auto request = server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef server(request->id);
  EXPECT_EQ(request->param.ud.private_data_len, 180);
  EXPECT_EQ(text(request->param.ud.private_data, 6), "lookup");
  request.reset();
  make_qp(server);
  auto answers = parameters("found");
  ASSERT_EQ(rdma_accept(server.get(), &answers), 0);
  const auto found = client_.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(found->param.ud.qp_num, server->qp->qp_num);
  EXPECT_EQ(found->param.ud.qkey, static_cast<std::uint32_t>(RDMA_UDP_QKEY));
  EXPECT_EQ(found->param.ud.private_data_len, 136);
  EXPECT_EQ(text(found->param.ud.private_data, 5), "found");
  EXPECT_EQ(found->param.ud.ah_attr.is_global, 1);
  ibv_ah* way = ibv_create_ah(client->pd, &found->param.ud.ah_attr);
  EXPECT_NE(way, nullptr);
  if (way != nullptr) ibv_destroy_ah(way);
}

TEST_F(RdmaCm, a_datagram_service_that_is_not_there_or_refuses_is_unreachable) {
  const IdRef listener = make_listener(server_, RDMA_PS_UDP);
  const IdRef refused = make_id(client_, RDMA_PS_UDP);
  resolve(refused, client_, port_of(listener));
  ASSERT_EQ(rdma_connect(refused.get(), nullptr), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_EQ(rdma_reject(server.get(), "full", 4), 0);
  const auto said = client_.expect(RDMA_CM_EVENT_UNREACHABLE, 2);
  EXPECT_EQ(said->param.ud.private_data_len, 136);
  EXPECT_EQ(std::string(static_cast<const char*>(said->param.ud.private_data), 5), std::string("full\0", 5));
  const IdRef absent = make_id(client_, RDMA_PS_UDP);
  resolve(absent, client_, 1);
  ASSERT_EQ(rdma_connect(absent.get(), nullptr), 0);
  EXPECT_EQ(client_.expect(RDMA_CM_EVENT_UNREACHABLE, 1)->param.ud.private_data_len, 136);
}

TEST_F(RdmaCm, calls_without_a_channel_wait_for_their_events) {
  rdma_addrinfo hints{}, *passive = nullptr, *active = nullptr;
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &passive), 0);
  ibv_qp_init_attr attr{};
  attr.cap = {
      .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16};
  attr.sq_sig_all = 1;
  rdma_cm_id *listener = nullptr, *client = nullptr, *server = nullptr;
  ASSERT_EQ(rdma_create_ep(&listener, passive, nullptr, &attr), 0) << std::strerror(errno);
  ASSERT_EQ(rdma_listen(listener, 1), 0);

  hints.ai_flags = 0;
  const auto port = std::to_string(ntohs(rdma_get_src_port(listener)));
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &active), 0);
  ASSERT_EQ(rdma_create_ep(&client, active, nullptr, &attr), 0) << std::strerror(errno);
  auto connecting = std::async(std::launch::async, [&] { return rdma_connect(client, nullptr); });
  ASSERT_EQ(rdma_get_request(listener, &server), 0) << std::strerror(errno);
  EXPECT_NE(server->qp, nullptr);
  EXPECT_EQ(rdma_accept(server, nullptr), 0) << std::strerror(errno);
  EXPECT_EQ(connecting.get(), 0);
  // The calls wait for DISCONNECTED, then TIMEWAIT_EXIT, and then for nothing.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rdma_disconnect(client), 0);
    EXPECT_EQ(rdma_disconnect(server), 0);
  }
  rdma_destroy_ep(client);
  rdma_destroy_ep(server);
  rdma_destroy_ep(listener);
  rdma_freeaddrinfo(passive);
  rdma_freeaddrinfo(active);
}

TEST_F(RdmaCm, a_call_that_waits_and_is_rejected_says_refused) {
  rdma_addrinfo hints{}, *active = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &active), 0);
  ibv_qp_init_attr attr{};
  attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  rdma_cm_id* client = nullptr;
  ASSERT_EQ(rdma_create_ep(&client, active, nullptr, &attr), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_connect(client, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  rdma_destroy_ep(client);
  rdma_freeaddrinfo(active);
}

TEST_F(RdmaCm, connections_made_by_many_threads_do_not_mix) {
  const IdRef listener = make_listener(server_, RDMA_PS_TCP, 64);
  constexpr int threads = 4, rounds = 10;
  auto serving = std::async(std::launch::async, [&] {
    std::vector<IdRef> accepted;
    int established = 0, disconnected = 0;
    while (disconnected < threads * rounds) {
      auto event = server_.next();
      if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        const std::string question = text(event->param.conn.private_data, 8);
        accepted.emplace_back(event->id);
        event.reset();
        make_qp(accepted.back());
        auto answer = parameters(question);
        EXPECT_EQ(rdma_accept(accepted.back().get(), &answer), 0) << std::strerror(errno);
      } else if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
        ++established;
      } else if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
        ++disconnected;
        rdma_disconnect(event->id);
      }
    }
    return established;
  });
  std::vector<std::future<int>> clients;
  for (int thread = 0; thread < threads; ++thread) {
    clients.push_back(std::async(std::launch::async, [&, thread] {
      Events events;
      int wrong = 0;
      for (int round = 0; round < rounds; ++round) {
        const std::string question = std::to_string(thread * 100 + round + 1000) + "....";
        const IdRef id = make_id(events);
        resolve(id, events, port_of(listener));
        make_qp(id);
        auto asks = parameters(question);
        EXPECT_EQ(rdma_connect(id.get(), &asks), 0);
        {
          const auto established = events.expect(RDMA_CM_EVENT_ESTABLISHED);
          wrong += text(established->param.conn.private_data, 8) != question;
        }
        EXPECT_EQ(rdma_disconnect(id.get()), 0);
        events.expect(RDMA_CM_EVENT_DISCONNECTED);
      }
      return wrong;
    }));
  }
  for (auto& client : clients) EXPECT_EQ(client.get(), 0);
  EXPECT_EQ(serving.get(), threads * rounds);
}

}  // namespace
}  // namespace weir::cm
