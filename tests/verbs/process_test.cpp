// Two processes: transfers between them, for both kinds of memory, whatever the target is doing.
#include "process_test.hpp"

#include <filesystem>
#include <set>
#include <thread>

namespace weir::verbs_test {
namespace {

struct Kinds {
  MemoryKind own, theirs;
};
class Connecting : public ProcessTest {};

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// The connection and its process's end: a server may have a thousand of them, and a shell allows 1024 files.
TEST_F(Connecting, to_a_process_takes_two_descriptors) {
  side.emplace(MemoryKind::ordinary, 4096);
  far = open_peer(peer, MemoryKind::ordinary);
  const auto before = open_files();
  ASSERT_EQ(peer.order({.order = Order::connect, .peer = side->address()}).error, 0);
  ASSERT_EQ(bring_up(side->qp.get(), far.qpn), 0);
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 512, far), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
  EXPECT_EQ(open_files() - before, 2);
}

class Moving : public ProcessTest, public testing::WithParamInterface<Kinds> {
 protected:
  void SetUp() override { connect(GetParam().own, GetParam().theirs); }
};
INSTANTIATE_TEST_SUITE_P(Memory, Moving,
                         testing::Values(Kinds{MemoryKind::ordinary, MemoryKind::ordinary},
                                         Kinds{MemoryKind::ordinary, MemoryKind::shared},
                                         Kinds{MemoryKind::shared, MemoryKind::ordinary},
                                         Kinds{MemoryKind::shared, MemoryKind::shared}));

constexpr std::size_t sizes[] = {1, 36, 37, 4096, 8192, 8193, 1u << 20};

TEST_P(Moving, writes_land) {
  for (const std::size_t size : sizes) {
    fill(side->bytes(), static_cast<std::uint32_t>(size));
    ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, size, size, far), 0);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), size));
    EXPECT_EQ(far_sum(size), own_sum(size)) << size;
  }
}

TEST_P(Moving, reads_fetch) {
  for (const std::size_t size : sizes) {
    ASSERT_EQ(peer.order({.order = Order::fill, .seed = static_cast<std::uint32_t>(size)}).error, 0);
    ASSERT_EQ(side->post(IBV_WR_RDMA_READ, size, size, far), 0);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), size));
    EXPECT_EQ(own_sum(size), far_sum(size)) << size;
  }
}

TEST_P(Moving, sends_arrive_in_both_directions) {
  for (const std::size_t size : sizes) {
    fill(side->bytes(), static_cast<std::uint32_t>(size));
    ASSERT_EQ(peer.order({.order = Order::receive, .count = 1, .length = size}).error, 0);
    ASSERT_EQ(side->post(IBV_WR_SEND, size, size, far), 0);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), size));
    EXPECT_EQ(peer.order({.order = Order::reap, .count = 1}).succeeded, 1u);
    EXPECT_EQ(far_sum(size), own_sum(size)) << size;

    ASSERT_EQ(peer.order({.order = Order::fill, .seed = static_cast<std::uint32_t>(size) + 1}).error, 0);
    ASSERT_EQ(side->receive(7, 0, size), 0);
    EXPECT_EQ(peer.order({.order = Order::run, .length = size, .opcode = IBV_WR_SEND}).succeeded, 1u);
    const auto wc = wait_for(side->cq.get());
    ASSERT_TRUE(completed(wc, 7));
    EXPECT_EQ(wc->byte_len, size);
    EXPECT_EQ(own_sum(size), far_sum(size)) << size;
  }
}

TEST_P(Moving, writes_with_immediate_land_and_are_announced) {
  for (const std::size_t size : sizes) {
    ASSERT_EQ(peer.order({.order = Order::fill, .seed = static_cast<std::uint32_t>(size)}).error, 0);
    ASSERT_EQ(side->receive(7, 0, 0), 0);
    EXPECT_EQ(peer.order({.order = Order::run,
                          .seed = 99,
                          .length = size,
                          .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                          .peer = side->address()})
                  .succeeded,
              1u);
    const auto wc = wait_for(side->cq.get());
    ASSERT_TRUE(completed(wc, 7));
    EXPECT_EQ(wc->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc->imm_data, 99u);
    EXPECT_EQ(own_sum(size), far_sum(size)) << size;
  }
}

// Nothing of a one-sided operation, nor of a SEND to a posted receive, needs a thread of the target.
TEST_P(Moving, a_stopped_target_is_written_read_and_sent_to) {
  const std::size_t size = 100'000;
  ASSERT_EQ(peer.order({.order = Order::receive, .count = 3, .length = size}).error, 0);
  peer.stop();
  fill(side->bytes(), 5);
  const SideAddress behind{far.qpn, far.rkey, far.addr + 3 * size};
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, size, behind), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
  for (const std::size_t length : {std::size_t{16}, std::size_t{5000}, size}) {
    ASSERT_EQ(side->post(IBV_WR_SEND, length, length, far), 0);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), length));
  }
  const std::uint64_t written = own_sum(size);
  std::fill_n(side->bytes().begin(), size, 0);
  ASSERT_EQ(side->post(IBV_WR_RDMA_READ, 2, size, behind), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 2));
  EXPECT_EQ(own_sum(size), written);
  peer.go_on();
  EXPECT_EQ(peer.order({.order = Order::reap, .count = 3}).succeeded, 3u);
  ASSERT_EQ(side->post(IBV_WR_RDMA_READ, 3, 4 * size, far), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 3));
  EXPECT_EQ(checksum(side->bytes().subspan(2 * size, size)), written) << "the third SEND";
  EXPECT_EQ(checksum(side->bytes().subspan(3 * size, size)), written) << "the WRITE";
}

// Where the target's process has a part in it (decision 0006), what is asked of a stopped one is done when it
// goes on.
TEST_P(Moving, a_target_that_was_stopped_gets_everything_in_the_end) {
  const std::size_t size = 100'000;
  ASSERT_EQ(peer.order({.order = Order::receive, .count = 1, .length = size}).error, 0);
  peer.stop();
  fill(side->bytes(), 6);
  const SideAddress behind{far.qpn, far.rkey, far.addr + size};
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, size, behind), 0);
  ASSERT_EQ(side->post(IBV_WR_SEND, 2, size, far), 0);
  peer.go_on();
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 2));
  EXPECT_EQ(peer.order({.order = Order::reap, .count = 1}).succeeded, 1u);
  EXPECT_EQ(far_sum(size), own_sum(size)) << "the SEND";
  const std::uint64_t sent = own_sum(size);
  ASSERT_EQ(side->post(IBV_WR_RDMA_READ, 3, 2 * size, far), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 3));
  EXPECT_EQ(checksum(side->bytes().subspan(size, size)), sent) << "the WRITE";
}

// Nobody polls, and no timeout is set.
TEST_F(ProcessTest, a_sleeping_initiator_is_woken_when_its_target_goes_on) {
  connect(MemoryKind::ordinary, MemoryKind::ordinary, {.timeout = 0, .retry_cnt = 0});
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(ibv_req_notify_cq(side->cq.get(), 0), 0);
    peer.stop();
    ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 100'000, far), 0);
    peer.go_on();
    ASSERT_TRUE(readable(side->channel->fd, 60'000)) << "round " << round;
    ibv_cq* cq;
    void* cookie;
    ASSERT_EQ(ibv_get_cq_event(side->channel.get(), &cq, &cookie), 0);
    ibv_ack_cq_events(cq, 1);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
  }
}

// ---- sleeping

TEST_F(ProcessTest, two_sleepers_wake_each_other_every_time) {
  connect();
  constexpr std::uint32_t rounds = 500;
  constexpr std::size_t size = 64;
  for (std::uint64_t i = 0; i < 16; ++i) ASSERT_EQ(side->receive(1, size, size), 0);
  peer.start({.order = Order::echo, .count = rounds, .length = size, .peer = side->address()});
  for (std::uint32_t round = 0; round < rounds; ++round) {
    ASSERT_EQ(side->post(IBV_WR_SEND, 2, size, far), 0);
    for (bool answered = false; !answered;) {
      ASSERT_EQ(ibv_req_notify_cq(side->cq.get(), 0), 0);
      bool any = false;
      while (const auto wc = poll_once(side->cq.get())) {
        any = true;
        ASSERT_EQ(wc->status, IBV_WC_SUCCESS) << "round " << round;
        answered = answered || wc->opcode == IBV_WC_RECV;
      }
      if (any) continue;
      ASSERT_TRUE(readable(side->channel->fd, 60'000)) << "lost a wake-up in round " << round;
      ibv_cq* cq;
      void* cookie;
      ASSERT_EQ(ibv_get_cq_event(side->channel.get(), &cq, &cookie), 0);
      ibv_ack_cq_events(cq, 1);
    }
    ASSERT_EQ(side->receive(1, size, size), 0);
  }
  EXPECT_EQ(peer.finish().succeeded, rounds);
}

TEST_F(ProcessTest, a_sleeping_sender_is_woken_when_its_peer_posts_a_receive) {
  connect();
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(ibv_req_notify_cq(side->cq.get(), 0), 0);
    ASSERT_EQ(side->post(IBV_WR_SEND, 1, 64, far), 0);
    ASSERT_FALSE(poll_once(side->cq.get()));
    ASSERT_EQ(peer.order({.order = Order::receive, .count = 1, .length = 64}).error, 0);
    ASSERT_TRUE(readable(side->channel->fd, 60'000)) << "round " << round;
    ibv_cq* cq;
    void* cookie;
    ASSERT_EQ(ibv_get_cq_event(side->channel.get(), &cq, &cookie), 0);
    ibv_ack_cq_events(cq, 1);
    ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
    ASSERT_EQ(peer.order({.order = Order::reap, .count = 1}).succeeded, 1u);
  }
}

// ---- threads

TEST_F(ProcessTest, many_threads_post_on_one_queue_pair_and_poll_one_cq) {
  connect();
  constexpr std::uint64_t threads = 4, each = 2000;
  std::mutex mutex;
  std::set<std::uint64_t> seen;
  std::atomic<bool> failed = false;
  std::vector<std::thread> workers;
  for (std::uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < each && !failed; ++i)
        while (side->post(IBV_WR_RDMA_WRITE, t * each + i, 64, far) != 0 && !failed) ::sched_yield();
    });
    if (t % 2 == 0) continue;
    workers.emplace_back([&] {
      for (;;) {
        const auto wc = poll_once(side->cq.get());
        const std::lock_guard lock(mutex);
        if (wc && (wc->status != IBV_WC_SUCCESS || !seen.insert(wc->wr_id).second)) failed = true;
        if (seen.size() == threads * each || failed) return;
      }
    });
  }
  for (auto& worker : workers) worker.join();
  EXPECT_FALSE(failed);
  EXPECT_EQ(seen.size(), threads * each);
}

// ---- mistakes

struct Mistake {
  const char* what;
  std::uint32_t rkey_off;
  std::int64_t addr_off;
  std::size_t length;
};
constexpr auto far_away = std::int64_t{1} << 40, memory_end = static_cast<std::int64_t>(memory_bytes);
constexpr Mistake mistakes[] = {
    {"another generation of the rkey", 1, 0, 64}, {"the rkey of no region", 0x10000, 0, 64},
    {"one byte before the region", 0, -1, 64},    {"one byte behind the region", 0, memory_end - 63, 64},
    {"a wild address", 0, far_away, 64},          {"an address that wraps", 0, -far_away * 1000, 64},
    {"more than the region", 0, 1, memory_bytes},
};

TEST_F(ProcessTest, refuses_wrong_rkeys_and_wild_addresses_and_lives_on) {
  for (const Mistake& mistake : mistakes) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      SCOPED_TRACE(mistake.what);
      PeerProcess target;
      Side initiator(MemoryKind::ordinary, memory_bytes);
      SideAddress there = open_peer(target, MemoryKind::ordinary);
      ASSERT_EQ(target.order({.order = Order::connect, .peer = initiator.address()}).error, 0);
      ASSERT_EQ(bring_up(initiator.qp.get(), there.qpn), 0);
      ASSERT_EQ(target.order({.order = Order::fill, .seed = 8}).error, 0);
      const std::uint64_t before = target.order({.order = Order::sum, .length = memory_bytes}).checksum;
      there.rkey += mistake.rkey_off;
      there.addr += static_cast<std::uint64_t>(mistake.addr_off);
      ASSERT_EQ(initiator.post(opcode, 1, mistake.length, there), 0);
      EXPECT_TRUE(completed(wait_for(initiator.cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
      EXPECT_EQ(target.order({.order = Order::sum, .length = memory_bytes}).checksum, before);
      EXPECT_EQ(std::count(initiator.bytes().begin(), initiator.bytes().end(), 0),
                static_cast<std::ptrdiff_t>(memory_bytes))
          << "a refused READ fetched something";
    }
  }
}

// ---- ends

// The bytes that the test writes after deregistering must stay.
class Taking : public ProcessTest, public testing::WithParamInterface<MemoryKind> {};
INSTANTIATE_TEST_SUITE_P(Memory, Taking, testing::Values(MemoryKind::ordinary, MemoryKind::shared));

TEST_P(Taking, no_write_lands_after_deregistration_returned) {
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    PeerProcess writer;
    Side target(GetParam(), memory_bytes);
    const SideAddress theirs = open_peer(writer, MemoryKind::ordinary);
    ASSERT_EQ(writer.order({.order = Order::connect, .peer = target.address()}).error, 0);
    ASSERT_EQ(bring_up(target.qp.get(), theirs.qpn), 0);
    ASSERT_EQ(writer.order({.order = Order::fill, .seed = 3}).error, 0);
    writer.start(
        {.order = Order::write_on, .length = round % 2 == 0 ? memory_bytes : 64, .peer = target.address()});
    volatile std::uint8_t* first = target.bytes().data();
    while (*first == 0) ::sched_yield();
    target.mr.reset();
    std::fill(target.bytes().begin(), target.bytes().end(), 0x55);
    EXPECT_EQ(writer.finish().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(std::count(target.bytes().begin(), target.bytes().end(), 0x55),
              static_cast<std::ptrdiff_t>(memory_bytes));
  }
}

TEST_P(Taking, no_write_lands_after_the_queue_pair_was_destroyed) {
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    PeerProcess writer;
    Side target(GetParam(), memory_bytes);
    const SideAddress theirs = open_peer(writer, MemoryKind::ordinary);
    constexpr Patience short_one{.timeout = 12, .retry_cnt = 1};
    ASSERT_EQ(writer.order({.order = Order::connect, .peer = target.address(), .patience = short_one}).error,
              0);
    ASSERT_EQ(bring_up(target.qp.get(), theirs.qpn), 0);
    ASSERT_EQ(writer.order({.order = Order::fill, .seed = 3}).error, 0);
    writer.start({.order = Order::write_on, .length = memory_bytes, .peer = target.address()});
    volatile std::uint8_t* first = target.bytes().data();
    while (*first == 0) ::sched_yield();
    target.qp.reset();
    std::fill(target.bytes().begin(), target.bytes().end(), 0x55);
    EXPECT_EQ(writer.finish().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(std::count(target.bytes().begin(), target.bytes().end(), 0x55),
              static_cast<std::ptrdiff_t>(memory_bytes));
  }
}

}  // namespace
}  // namespace weir::verbs_test
