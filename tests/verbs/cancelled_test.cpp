// Threads that are cancelled while they use the library: calls that rdma-core completes without waiting are
// not cancellation points, and no call is left half done.
#include <cerrno>
#include <cstring>

#include "tests/cancelled_thread.hpp"
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

using test::is_ended_in;

class Cancelled : public VerbsTest {
 protected:
  Cancelled()
      : channel(ibv_create_comp_channel(context.get())),
        receive_cq(make_cq(128, channel.get())),
        send_cq(make_cq()),
        a(make_qp(send_cq.get())),
        b(make_qp(receive_cq.get())) {}
  // One that wakes somebody.
  void send(std::uint64_t id) {
    ASSERT_EQ(ibv_req_notify_cq(receive_cq.get(), 0), 0);
    ibv_sge sge = source.sge(0, 64);
    EXPECT_FALSE(is_ended_in([&] { EXPECT_EQ(post(a.get(), send_wr(id, sge)), 0); }));
  }

  Buffer memory{pd.get(), 64}, source{pd.get(), 64};
  Channel channel;
  Cq receive_cq, send_cq;
  Qp a, b;
};

TEST_F(Cancelled, a_send_that_wakes_the_receiver_is_whole) {
  connect(a.get(), b.get());
  for (std::uint64_t id : {1, 2, 3}) {
    ASSERT_EQ(post_recv(b.get(), id, memory.all()), 0);
    send(id);
    EXPECT_TRUE(completed(poll_once(send_cq.get()), id));
    EXPECT_TRUE(completed(poll_once(receive_cq.get()), id));
    ASSERT_TRUE(readable(channel->fd));
    ibv_cq* of = nullptr;
    void* cookie = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &cookie), 0);
    ibv_ack_cq_events(of, 1);
  }
}

TEST_F(Cancelled, a_receive_that_lets_a_parked_send_through_is_whole) {
  connect(a.get(), b.get());
  send(1);
  EXPECT_FALSE(poll_once(send_cq.get()));
  EXPECT_FALSE(is_ended_in([&] { EXPECT_EQ(post_recv(b.get(), 2, memory.all()), 0); }));
  EXPECT_TRUE(completed(wait_for(send_cq.get()), 1));
  EXPECT_TRUE(completed(wait_for(receive_cq.get()), 2));
}

TEST_F(Cancelled, no_call_that_makes_or_destroys_something_ends_the_thread) {
  ibv_mr* mr = nullptr;
  ibv_comp_channel* other_channel = nullptr;
  ibv_cq* cq = nullptr;
  std::vector<std::uint8_t> bytes(4096);
  const std::vector<std::pair<const char*, std::function<bool()>>> calls{
      {"ibv_reg_mr", [&] { return (mr = register_memory(pd.get(), bytes.data(), bytes.size())) != nullptr; }},
      {"ibv_create_comp_channel",
       [&] { return (other_channel = ibv_create_comp_channel(context.get())) != nullptr; }},
      {"ibv_create_cq",
       [&] { return (cq = ibv_create_cq(context.get(), 16, nullptr, other_channel, 0)) != nullptr; }},
      {"ibv_modify_qp",
       [&] { return bring_up(a.get(), b->qp_num) == 0 && bring_up(b.get(), a->qp_num) == 0; }},
      {"ibv_destroy_qp", [&] { return ibv_destroy_qp(a.release()) == 0; }},
      {"ibv_destroy_cq", [&] { return ibv_destroy_cq(cq) == 0; }},
      {"ibv_destroy_comp_channel", [&] { return ibv_destroy_comp_channel(other_channel) == 0; }},
      {"ibv_dereg_mr", [&] { return ibv_dereg_mr(mr) == 0; }},
      {"ibv_open_device and ibv_close_device", [&] {
         ibv_context* const opened = ibv_open_device(context->device);
         return opened != nullptr && ibv_close_device(opened) == 0;
       }}};
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(is_ended_in([&] { EXPECT_TRUE(call()) << std::strerror(errno); }));
  }
}

// The CQ's own unacknowledged event (a count in the channel) ends with the CQ.
TEST_F(Cancelled, a_cq_with_an_event_that_nobody_took_is_destroyed_whole) {
  connect(a.get(), b.get());
  ASSERT_EQ(post_recv(b.get(), 1, memory.all()), 0);
  send(1);
  EXPECT_TRUE(readable(channel->fd));
  b.reset();
  EXPECT_FALSE(is_ended_in([&] { receive_cq.reset(); }));
  EXPECT_FALSE(readable(channel->fd));
}

TEST_F(Cancelled, waiting_for_an_event_ends_the_thread_and_takes_none) {
  ibv_cq* of = nullptr;
  void* cookie = nullptr;
  EXPECT_TRUE(is_ended_in([&] { ibv_get_cq_event(channel.get(), &of, &cookie); }));
  ibv_async_event event;
  EXPECT_TRUE(is_ended_in([&] { ibv_get_async_event(context.get(), &event); }));
  connect(a.get(), b.get());
  ASSERT_EQ(post_recv(b.get(), 1, memory.all()), 0);
  send(1);
  ASSERT_TRUE(readable(channel->fd));
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &cookie), 0);
  EXPECT_EQ(of, receive_cq.get());
  ibv_ack_cq_events(of, 1);
}

}  // namespace
}  // namespace weir::verbs_test
