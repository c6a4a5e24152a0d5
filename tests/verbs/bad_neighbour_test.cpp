// A neighbour that speaks the link's protocol but not the NIC's: whatever it sends, the NIC keeps
// running and serves the others.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "link/memory/mapping.hpp"
#include "link/same_host.hpp"
#include "peer_process.hpp"
#include "rnic/same_host/guest_operations.hpp"
#include "verbs/nic/messages.hpp"
#include "verbs/nic/peers.hpp"
#include "work_queues.hpp"

namespace weir::verbs_test {
namespace {

constexpr std::size_t memory_bytes = 1u << 16;
constexpr link::Slot slot_of(const SideAddress& address) {
  return static_cast<link::Slot>(address.qpn >> 14);
}

class BadNeighbour : public testing::Test {
 protected:
  BadNeighbour() { address = peer.order({.order = Order::open, .length = memory_bytes}).address; }

  // Attached beside the peer, showing whatever greeting.
  std::unique_ptr<link::SameHostLink> attach(link::Greeting greeting) {
    link::SameHostLink::Options options;
    options.directory = link::SameHostLink::default_directory(std::getenv("WEIR_RUNTIME_DIR"));
    options.greeting = std::move(greeting);
    auto attached = link::SameHostLink::attach(std::move(options));
    EXPECT_TRUE(attached);
    return attached ? std::move(*attached) : nullptr;
  }
  static link::UniqueFd file(std::size_t bytes) {
    link::UniqueFd fd(::memfd_create("nonsense", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    return fd;
  }
  // The peer still does for a good neighbour what it should.
  void expect_serves_others() {
    Side side(MemoryKind::shared, memory_bytes);
    const Reply connected = peer.order({.order = Order::connect, .peer = side.address()});
    ASSERT_EQ(connected.error, 0);
    ASSERT_EQ(bring_up(side.qp.get(), address.qpn), 0);
    fill(side.bytes(), 4);
    ASSERT_EQ(side.post(IBV_WR_RDMA_WRITE, 1, memory_bytes, address), 0);
    ASSERT_TRUE(completed(wait_for(side.cq.get()), 1));
    EXPECT_EQ(peer.order({.order = Order::sum, .length = memory_bytes}).checksum, checksum(side.bytes()));
  }

  PeerProcess peer;
  SideAddress address;
};

TEST_F(BadNeighbour, sends_nonsense_of_every_kind) {
  constexpr std::uint32_t seed = 11;
  std::mt19937 random(seed);
  const auto link = attach({});
  const auto neighbour = link->connect(slot_of(address), std::chrono::seconds(5));
  ASSERT_TRUE(neighbour);
  const link::UniqueFd nonsense = file(4096);
  const int fd = nonsense.get();
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> body(i % 3 == 0 ? random() % 64 : 16);
    for (std::byte& byte : body) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    const auto kind = static_cast<std::uint16_t>(1 + random() % 13);
    const std::span<const int> fds = random() % 4 == 0 ? std::span(&fd, 1) : std::span<const int>();
    // A full queue is the sender's business; what counts is that the receiver goes on.
    if (!(*neighbour)->send(kind, body, fds)) ::sched_yield();
  }
  expect_serves_others();
}

// A work queue fails only so: no sender has a reason to move it.
TEST_F(BadNeighbour, that_fails_a_work_queue_is_reported) {
  Side side(MemoryKind::ordinary, memory_bytes);
  Wq wq = ready_wq(side.pd.get(), side.cq.get());
  ASSERT_EQ(post_recv(wq.get(), 3, side.sge(0, 64)), 0);
  const auto link = attach({});
  const auto neighbour = link->connect(slot_of({.qpn = wq->wq_num}), std::chrono::seconds(5));
  ASSERT_TRUE(neighbour);
  const int segment = (*neighbour)->greeting().fds[0].get();
  const auto mapping =
      link::Mapping::of_file(segment, link::file_bytes(segment), link::Mapping::Rights::read_write);
  ASSERT_TRUE(mapping);
  auto& header = *reinterpret_cast<rnic::SegmentHeader*>(mapping->data());
  header.qps[rnic::Qpn(wq->wq_num).index()].state = static_cast<std::uint32_t>(rnic::QpState::err);
  ASSERT_TRUE(verbs::message::send(**neighbour, verbs::message::fault, wq->wq_num));
  ASSERT_TRUE(readable(side.context->async_fd, 60'000));
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(side.context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_WQ_FATAL);
  EXPECT_EQ(event.element.wq, wq.get());
  EXPECT_TRUE(completed(wait_for(side.cq.get()), 3, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(move(wq.get(), IBV_WQS_RDY), EINVAL) << "it is in error";
  ibv_ack_async_event(&event);
  wq.reset();
}

TEST_F(BadNeighbour, that_counts_events_without_end_does_not_hold_up_the_end_of_a_cq) {
  Side side(MemoryKind::ordinary, memory_bytes);
  const Channel channel(ibv_create_comp_channel(side.context.get()));
  Cq cq(ibv_create_cq(side.context.get(), 8, nullptr, channel.get(), 0));
  const auto link = attach({});
  const auto neighbour = link->connect(slot_of({.qpn = side.qp->qp_num}), std::chrono::seconds(5));
  ASSERT_TRUE(neighbour);
  const int fd = (*neighbour)->greeting().fds.at(0).get();
  const auto segment = link::Mapping::of_file(fd, link::file_bytes(fd), link::Mapping::Rights::read_write);
  ASSERT_TRUE(segment);
  reinterpret_cast<rnic::SegmentHeader*>(segment->data())->cqs[cq->handle].events = 0xffffffff;
  const auto began = std::chrono::steady_clock::now();
  cq.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes(1));
}

// The peer took no part: it learns only that the connection ended.
TEST_F(BadNeighbour, is_inside_an_operation_when_it_ends) {
  auto link = attach({});
  const auto neighbour = link->connect(slot_of(address), std::chrono::seconds(5));
  ASSERT_TRUE(neighbour);
  const int fd = (*neighbour)->greeting().fds.at(0).get();
  const auto segment = link::Mapping::of_file(fd, link::file_bytes(fd), link::Mapping::Rights::read_write);
  ASSERT_TRUE(segment);
  auto& header = *reinterpret_cast<rnic::SegmentHeader*>(segment->data());
  std::uint32_t hint = 0;
  const rnic::Qpn qpn(link->slot(), 2);
  alignas(rnic::GuestOperation) std::byte never_ends[sizeof(rnic::GuestOperation)];
  ASSERT_TRUE((new (never_ends) rnic::GuestOperation(header, qpn, hint))->inside());
  link.reset();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (rnic::GuestWord::unpack(header.guests[0].word.load()).initiator == qpn) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    ::sched_yield();
  }
}

// Right in what it says, wrong in what it shares: of another size, or not sealed, so that it may be cut
// short.
struct Shared {
  std::size_t segment, table;
  bool sealed;
};
class BadGreeting : public BadNeighbour, public testing::WithParamInterface<Shared> {};
INSTANTIATE_TEST_SUITE_P(Shared, BadGreeting,
                         testing::Values(Shared{0, 0, true}, Shared{4096, 4096, true},
                                         Shared{1ull << 32, 4096, true}, Shared{4096, 1ull << 26, true},
                                         Shared{rnic::segment_rings_offset, rnic::tpt_bytes, false}));

TEST_P(BadGreeting, is_nobody_to_connect_to) {
  const verbs::GreetingBody body;
  const auto bytes = std::as_bytes(std::span(&body, 1));
  link::Greeting greeting;
  greeting.body.assign(bytes.begin(), bytes.end());
  for (const std::size_t size : {GetParam().segment, GetParam().table})
    greeting.fds.push_back(GetParam().sealed ? link::make_shared_file("nonsense", size) : file(size));
  const auto link = attach(std::move(greeting));
  ASSERT_TRUE(link->connect(slot_of(address), std::chrono::seconds(5)));
  const SideAddress impostor{.qpn = static_cast<std::uint32_t>(link->slot()) << 14 | 2};
  constexpr Patience short_one{.timeout = 8, .retry_cnt = 0};
  ASSERT_EQ(peer.order({.order = Order::connect, .peer = impostor, .patience = short_one}).error, 0);
  const Reply reply =
      peer.order({.order = Order::run, .length = 64, .opcode = IBV_WR_SEND, .peer = impostor});
  EXPECT_EQ(reply.status, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace weir::verbs_test
