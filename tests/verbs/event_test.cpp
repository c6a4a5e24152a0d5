// Completion channels and asynchronous events: real descriptors, one event for each arming, acknowledgements.
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "tests/give_others_time.hpp"
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

// A pair whose receiving end completes into a CQ with a channel.
class EventTest : public VerbsTest {
 protected:
  EventTest()
      : channel(ibv_create_comp_channel(context.get())),
        cq(make_cq(128, channel.get(), &cookie)),
        send_cq(make_cq()),
        a(make_qp(send_cq.get())),
        b(make_qp(cq.get())) {
    connect(a.get(), b.get());
    for (std::uint64_t i = 0; i < 32; ++i) EXPECT_EQ(post_recv(b.get(), i, memory.all()), 0);
  }
  void send(unsigned flags = 0) {
    ibv_sge sge = source.sge(0, 4);
    ASSERT_EQ(post(a.get(), send_wr(1, sge, IBV_WR_SEND, flags)), 0);
  }
  // The event that must be there.
  void take_event(ibv_cq* expected) {
    ASSERT_TRUE(readable(channel->fd, 60'000));
    ibv_cq* got = nullptr;
    void* got_cookie = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &got, &got_cookie), 0);
    EXPECT_EQ(got, expected);
    EXPECT_EQ(got_cookie, expected->cq_context);
    ibv_ack_cq_events(got, 1);
  }

  int cookie = 0;
  Buffer memory{pd.get(), 64}, source{pd.get(), 64};
  Channel channel;
  Cq cq, send_cq;
  Qp a, b;
};

TEST_F(EventTest, an_armed_cq_makes_the_descriptor_readable_once) {
  EXPECT_FALSE(readable(channel->fd));
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  EXPECT_FALSE(readable(channel->fd));
  send();
  send();
  take_event(cq.get());
  EXPECT_FALSE(readable(channel->fd));
  EXPECT_TRUE(completed(wait_for(cq.get()), 0));
  EXPECT_TRUE(completed(wait_for(cq.get()), 1));
}

TEST_F(EventTest, an_unarmed_cq_stays_silent) {
  send();
  ASSERT_TRUE(completed(wait_for(cq.get()), 0));
  EXPECT_FALSE(readable(channel->fd));
}

TEST_F(EventTest, solicited_only_wakes_for_a_solicited_send) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  send();
  ASSERT_TRUE(completed(wait_for(cq.get()), 0));
  EXPECT_FALSE(readable(channel->fd));
  send(IBV_SEND_SOLICITED);
  take_event(cq.get());
}

TEST_F(EventTest, getting_an_event_from_a_non_blocking_descriptor_says_eagain) {
  ASSERT_EQ(::fcntl(channel->fd, F_SETFL, ::fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_cq* got;
  void* got_cookie;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &got, &got_cookie), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  send();
  take_event(cq.get());
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &got, &got_cookie), -1);
}

TEST_F(EventTest, getting_an_event_blocks_until_one_comes) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  std::thread sleeper([&] {
    ibv_cq* got = nullptr;
    void* got_cookie = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel.get(), &got, &got_cookie), 0);
    EXPECT_EQ(got, cq.get());
    ibv_ack_cq_events(got, 1);
  });
  send();
  sleeper.join();
}

TEST_F(EventTest, the_descriptor_works_with_epoll) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {.u32 = 5}};
  ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &wanted), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  send();
  epoll_event got{};
  ASSERT_EQ(::epoll_wait(epoll, &got, 1, 5000), 1);
  EXPECT_EQ(got.data.u32, 5u);
  take_event(cq.get());
  ::close(epoll);
}

TEST_F(EventTest, one_channel_serves_many_cqs_and_names_the_right_one) {
  Cq other = make_cq(8, channel.get(), &other);
  Qp c = make_qp(send_cq.get()), d = make_qp(other.get());
  connect(c.get(), d.get());
  ASSERT_EQ(post_recv(d.get(), 7, memory.all()), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(other.get(), 0), 0);
  ibv_sge sge = memory.sge(0, 4);
  ASSERT_EQ(post(c.get(), send_wr(1, sge)), 0);
  take_event(other.get());
  EXPECT_FALSE(readable(channel->fd));
  send();
  take_event(cq.get());
}

TEST_F(EventTest, destroying_a_cq_waits_for_its_acknowledgements) {
  Cq other = make_cq(8, channel.get());
  Qp c = make_qp(send_cq.get()), d = make_qp(other.get());
  connect(c.get(), d.get());
  ASSERT_EQ(post_recv(d.get(), 7, memory.all()), 0);
  ASSERT_EQ(ibv_req_notify_cq(other.get(), 0), 0);
  ibv_sge sge = memory.sge(0, 4);
  ASSERT_EQ(post(c.get(), send_wr(1, sge)), 0);
  ibv_cq* got = nullptr;
  void* got_cookie = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &got, &got_cookie), 0);
  c.reset();
  d.reset();
  std::atomic<bool> destroyed = false;
  ibv_cq* raw = other.release();
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_cq(raw), 0);
    destroyed = true;
  });
  give_others_time();
  EXPECT_FALSE(destroyed);
  ibv_ack_cq_events(raw, 1);
  destroyer.join();
}

// An event loop would call ibv_get_cq_event, and block there for ever.
TEST_F(EventTest, the_events_of_a_destroyed_cq_do_not_keep_the_descriptor_readable) {
  Cq other = make_cq(8, channel.get());
  Qp c = make_qp(send_cq.get()), d = make_qp(other.get());
  connect(c.get(), d.get());
  ASSERT_EQ(post_recv(d.get(), 7, memory.all()), 0);
  ASSERT_EQ(ibv_req_notify_cq(other.get(), 0), 0);
  ibv_sge sge = memory.sge(0, 4);
  ASSERT_EQ(post(c.get(), send_wr(1, sge)), 0);
  ASSERT_TRUE(readable(channel->fd, 60'000));
  c.reset();
  d.reset();
  other.reset();
  EXPECT_FALSE(readable(channel->fd));
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  send();
  take_event(cq.get());
}

TEST_F(EventTest, a_flush_wakes_even_a_sleeper_that_waits_for_solicited_ones) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  Step error{};
  error.attr.qp_state = IBV_QPS_ERR;
  error.mask = IBV_QP_STATE;
  ASSERT_EQ(modify(b.get(), error), 0);
  take_event(cq.get());
  EXPECT_TRUE(completed(wait_for(cq.get()), 0, IBV_WC_WR_FLUSH_ERR));
}

// No event is lost between arming and sleeping, whatever the interleaving.
TEST_F(EventTest, a_sleeper_that_arms_polls_and_sleeps_hears_of_every_message) {
  constexpr int messages = 3000;
  std::thread sender([&] {
    for (int i = 0; i < messages; ++i) {
      while (post_recv(b.get(), 100, memory.all()) != 0) ::sched_yield();
      ibv_sge sge = source.sge(0, 4);
      while (post(a.get(), send_wr(1, sge)) != 0) (void)poll_once(send_cq.get());
      (void)poll_once(send_cq.get());
    }
  });
  int received = 0;
  while (received < messages) {
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    bool any = false;
    while (auto wc = poll_once(cq.get())) {
      ASSERT_EQ(wc->status, IBV_WC_SUCCESS);
      ++received;
      any = true;
    }
    if (any || received >= messages) continue;
    ASSERT_TRUE(readable(channel->fd, 60'000)) << "lost a wake-up after " << received;
    ibv_cq* got;
    void* got_cookie;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &got, &got_cookie), 0);
    ibv_ack_cq_events(got, 1);
  }
  sender.join();
}

// ---- asynchronous events

class AsyncTest : public ConnectedTest {
 protected:
  ibv_async_event wait_for_event() {
    ibv_async_event event{};
    EXPECT_TRUE(readable(context->async_fd, 60'000));
    EXPECT_EQ(ibv_get_async_event(context.get(), &event), 0);
    return event;
  }
  // Makes the NIC of `b` send a NAK for it.
  void fault() {
    Buffer memory(pd.get(), 8);
    ibv_sge sge = memory.all();
    ASSERT_EQ(post(a.get(), send_wr(1, sge, IBV_WR_RDMA_WRITE)), 0);  // rkey 0
    ASSERT_TRUE(completed(wait_for(a_cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
  }
};

// What each NAK tells the target's program (IBA 11.6.3.2), as mlx5 has it.
struct Refused {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint64_t offset;    // of what is asked for, in the target's region
  bool right_key;          // to that region
  bool right_receive;      // the key of the receive's buffer
  std::uint32_t received;  // bytes of it
  ibv_wc_status status;    // what the requester gets
  ibv_event_type event;
};
class RefusedRequest : public AsyncTest, public testing::WithParamInterface<Refused> {};
INSTANTIATE_TEST_SUITE_P(Request, RefusedRequest,
                         testing::Values(Refused{"write", IBV_WR_RDMA_WRITE, 0, false, true, 8,
                                                 IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
                                         Refused{"write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0, false, true,
                                                 8, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
                                         Refused{"write_beyond_the_region", IBV_WR_RDMA_WRITE, 16, true, true,
                                                 8, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
                                         Refused{"read", IBV_WR_RDMA_READ, 0, false, true, 8,
                                                 IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
                                         Refused{"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, false, true, 8,
                                                 IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
                                         Refused{"unaligned_atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 4, true,
                                                 true, 8, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
                                         Refused{"send_longer_than_its_receive", IBV_WR_SEND, 0, true, true,
                                                 7, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
                                         Refused{"send_into_a_bad_receive", IBV_WR_SEND, 0, true, false, 8,
                                                 IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(RefusedRequest, is_told_to_the_targets_program_by_its_kind) {
  const Refused& row = GetParam();
  Buffer from(pd.get(), 8), target(pd.get(), 16);
  ibv_sge receive = target.sge(0, row.received);
  if (!row.right_receive) receive.lkey = 0;
  ASSERT_EQ(post_recv(b.get(), 2, receive), 0);
  ibv_sge sge = from.all();
  ibv_send_wr wr = send_wr(1, sge, row.opcode);
  const std::uint64_t addr = target.addr() + row.offset;
  const std::uint32_t key = row.right_key ? target.rkey() : 0;
  if (row.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = addr;
    wr.wr.atomic.rkey = key;
  } else {
    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = key;
  }
  EXPECT_FALSE(readable(context->async_fd));
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1, row.status));
  ibv_async_event event = wait_for_event();
  EXPECT_EQ(event.event_type, row.event);
  EXPECT_EQ(event.element.qp, b.get());
  ibv_ack_async_event(&event);  // or destroying it would wait
  EXPECT_FALSE(readable(context->async_fd));
}

TEST_F(AsyncTest, a_non_blocking_descriptor_says_eagain) {
  ASSERT_EQ(::fcntl(context->async_fd, F_SETFL, ::fcntl(context->async_fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_async_event event{};
  errno = 0;
  EXPECT_EQ(ibv_get_async_event(context.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(AsyncTest, destroying_a_queue_pair_waits_for_its_acknowledgements) {
  fault();
  ibv_async_event event = wait_for_event();
  std::atomic<bool> destroyed = false;
  ibv_qp* raw = b.release();
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_qp(raw), 0);
    destroyed = true;
  });
  give_others_time();
  EXPECT_FALSE(destroyed);
  ibv_ack_async_event(&event);
  destroyer.join();
}

TEST_F(AsyncTest, the_events_of_a_destroyed_queue_pair_go_with_it) {
  fault();
  ASSERT_TRUE(readable(context->async_fd, 60'000));
  b.reset();
  EXPECT_FALSE(readable(context->async_fd));
}

TEST_F(AsyncTest, an_srq_below_its_limit_is_reported_once) {
  Buffer memory(pd.get(), 64);
  ibv_srq_init_attr init{nullptr, {16, 1, 0}};
  Srq srq(ibv_create_srq(pd.get(), &init));
  Qp sender = make_qp(a_cq.get()), receiver = make_qp(b_cq.get(), {.srq = srq.get()});
  connect(sender.get(), receiver.get());
  for (std::uint64_t i = 0; i < 4; ++i) {
    ibv_sge into = memory.all();
    ibv_recv_wr wr{.wr_id = i, .next = nullptr, .sg_list = &into, .num_sge = 1};
    ibv_recv_wr* bad;
    ASSERT_EQ(ibv_post_srq_recv(srq.get(), &wr, &bad), 0);
  }
  ibv_srq_attr attr{0, 0, 3};
  ASSERT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT), 0);
  ibv_sge sge = memory.sge(0, 4);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(post(sender.get(), send_wr(1, sge)), 0);
  ibv_async_event event = wait_for_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq.get());
  ibv_ack_async_event(&event);
  ASSERT_EQ(ibv_query_srq(srq.get(), &attr), 0);
  EXPECT_EQ(attr.srq_limit, 0u);
  EXPECT_FALSE(readable(context->async_fd));
}

TEST_F(AsyncTest, a_queue_pair_on_an_srq_reports_its_last_wqe_when_it_goes_to_error) {
  ibv_srq_init_attr init{nullptr, {16, 1, 0}};
  Srq srq(ibv_create_srq(pd.get(), &init));
  Qp receiver = make_qp(b_cq.get(), {.srq = srq.get()});
  ASSERT_EQ(bring_up(receiver.get(), receiver->qp_num), 0);
  Step error{};
  error.attr.qp_state = IBV_QPS_ERR;
  error.mask = IBV_QP_STATE;
  ASSERT_EQ(modify(receiver.get(), error), 0);
  ibv_async_event event = wait_for_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, receiver.get());
  ibv_ack_async_event(&event);
}

TEST_F(AsyncTest, events_go_to_the_context_of_their_object_only) {
  Context other = open_device();
  fault();
  ibv_async_event event = wait_for_event();
  ibv_ack_async_event(&event);
  EXPECT_FALSE(readable(other->async_fd));
}

}  // namespace
}  // namespace weir::verbs_test
