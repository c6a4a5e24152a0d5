// Steering datagrams of a shared port, on loopback: each "process" is a socket with a slot.
#include "link/udp/steering.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "link/abstract_socket.hpp"
#include "own_network.hpp"
#include "wire/mad.hpp"
#include "wire/roce.hpp"

namespace weir::link {
namespace {

constexpr SlotShifts shifts{.queue_pair = 14, .communication = 22};
constexpr std::uint32_t queue_pair_of(Slot slot) { return std::uint32_t{slot} << 14 | 3; }
constexpr std::uint32_t communication_of(Slot slot) { return std::uint32_t{slot} << 22 | 5; }
constexpr std::uint32_t service = 0x0106'1d2f;

using Bytes = std::vector<std::byte>;

// The bytes of a packet that steering looks at, and zeros.
Bytes packet_to(std::uint32_t queue_pair, std::size_t bytes = 100) {
  Bytes packet(bytes);
  for (int i = 0; i < 3; ++i) packet[static_cast<std::size_t>(5 + i)] = std::byte(queue_pair >> (16 - 8 * i));
  return packet;
}

template <class Message>
Bytes management(const Message& message) {
  Bytes packet = packet_to(1, 20);
  const auto mad = wire::encode_mad({.message = message});
  packet.insert(packet.end(), mad.begin(), mad.end());
  packet.resize(packet.size() + 4);
  return packet;
}

class SteeringTest : public testing::Test {
 protected:
  struct Process {
    std::unique_ptr<UdpPort> port;
    std::unique_ptr<Steering> steering;
    bool settle_wanted = false;
    int came = 0, heard_of_others = 0;
  };
  using ProcessPtr = std::unique_ptr<Process>;

  void SetUp() override {
    if (!own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    if (names_are_hidden()) GTEST_SKIP() << "the kernel does not say whose an abstract name is";
  }
  static bool names_are_hidden();

  ProcessPtr start(Slot slot) {
    auto process = std::make_unique<Process>();
    process->port = *UdpPort::open(wire::roce_port);
    process->steering = std::make_unique<Steering>(
        Steering::Options{.socket = process->port->descriptor(),
                          .port = wire::roce_port,
                          .slot = slot,
                          .shifts = shifts,
                          .seed = slot,
                          .settle_later = [it = process.get()] { it->settle_wanted = true; },
                          .another_looks = [it = process.get()] { ++it->heard_of_others; }});
    process->steering->look(now_);
    settle(*process);
    return process;
  }
  void take(Process& process) {
    process.port->receive([&](std::span<const UdpArrival> arrivals) {
      for (const UdpArrival& arrival : arrivals) process.came += process.steering->take(arrival) ? 0 : 1;
    });
  }
  void settle(Process& process) {
    while (std::exchange(process.settle_wanted, false)) {
      now_ += Steering::settle_time;
      take(process);
      process.steering->settle(now_);
    }
  }
  // As a process does that is active: takes what has come, and looks after its place.
  void work(Process& process) {
    now_ += Steering::check_interval;
    take(process);
    process.steering->check(now_);
    settle(process);
  }
  // How many of ten such datagrams, each from a port of its own, come to that process.
  int come_to(Process& process, const Bytes& packet, const IpAddress& to = v4_loopback(1)) {
    take(process);
    process.came = 0;
    for (int i = 0; i < 10; ++i) {
      const UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(wire::roce_port);
      std::memcpy(&address.sin6_addr, to.data(), to.size());
      EXPECT_EQ(::sendto(socket.get(), packet.data(), packet.size(), 0,
                         reinterpret_cast<const sockaddr*>(&address), sizeof address),
                static_cast<ssize_t>(packet.size()));
    }
    take(process);
    return process.came;
  }

  Clock::time_point now_{std::chrono::hours(1)};
};

bool SteeringTest::names_are_hidden() {
  const auto held = hold_name("weir-steering-test");
  return held && names_of_user(::geteuid(), "weir-steering-test").empty();
}

TEST_F(SteeringTest, each_process_finds_its_own_place) {
  std::vector<ProcessPtr> all;
  for (Slot slot = 20; slot > 0; --slot) all.push_back(start(slot));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]->steering->place(), i);
}

TEST_F(SteeringTest, a_packet_comes_to_the_process_of_its_queue_pair) {
  std::vector<ProcessPtr> all;
  for (const Slot slot : {700, 3, 1023, 12, 511}) all.push_back(start(slot));
  int i = 0;
  for (const Slot slot : {700, 3, 1023, 12, 511}) {
    SCOPED_TRACE(slot);
    EXPECT_EQ(come_to(*all[static_cast<std::size_t>(i)], packet_to(queue_pair_of(slot))), 10);
    EXPECT_EQ(come_to(*all[static_cast<std::size_t>(i++)], packet_to(queue_pair_of(slot)), v6_loopback), 10);
  }
}

TEST_F(SteeringTest, the_last_to_begin_knows_everybody_without_asking) {
  const auto stopped = start(5), other = start(6);
  const auto late = start(7);
  EXPECT_EQ(come_to(*stopped, packet_to(queue_pair_of(5))), 10);
  EXPECT_EQ(come_to(*other, packet_to(queue_pair_of(6))), 10);
  EXPECT_EQ(come_to(*late, packet_to(queue_pair_of(7))), 10);
}

TEST_F(SteeringTest, an_answer_of_the_connection_manager_comes_to_who_asked) {
  const auto first = start(8), second = start(9);
  const std::uint32_t to = communication_of(9), from = 77;
  EXPECT_EQ(come_to(*second, management(wire::CmRep{.local_id = from, .remote_id = to})), 10);
  EXPECT_EQ(come_to(*second, management(wire::CmRej{.local_id = from, .remote_id = to})), 10);
  EXPECT_EQ(come_to(*second, management(wire::CmMra{.local_id = from, .remote_id = to})), 10);
  EXPECT_EQ(come_to(*second, management(wire::CmRtu{.local_id = from, .remote_id = to})), 10);
  EXPECT_EQ(come_to(*second, management(wire::CmDreq{.local_id = from, .remote_id = to})), 10);
  EXPECT_EQ(come_to(*second, management(wire::CmDrep{.local_id = from, .remote_id = to})), 10);
  EXPECT_EQ(come_to(*second, management(wire::CmSidrRep{.request_id = to})), 10);
  EXPECT_EQ(come_to(*first, management(wire::CmRep{.local_id = from, .remote_id = communication_of(8)})), 10);
}

TEST_F(SteeringTest, a_request_comes_to_who_listens_for_its_service) {
  const auto first = start(8), second = start(9), third = start(10);
  second->steering->listen(service);
  const auto request = management(wire::CmReq{.local_id = 77, .service_id = service});
  const auto lookup = management(wire::CmSidrReq{.request_id = 77, .service_id = service});
  EXPECT_EQ(come_to(*second, request), 10);
  EXPECT_EQ(come_to(*second, lookup), 10);
  second->steering->leave(service);
  third->steering->listen(service);
  EXPECT_EQ(come_to(*third, request), 10);
}

// A stopped process then hears only some of the copies of a request that is repeated.
TEST_F(SteeringTest, requests_for_an_unknown_service_come_now_here_and_now_there) {
  const auto first = start(8), second = start(9);
  const auto request = management(wire::CmReq{.local_id = 77, .service_id = service});
  int here = 0;
  for (int i = 0; i < 20; ++i) here += come_to(*first, request);
  EXPECT_GT(here, 20);
  EXPECT_LT(here, 180);
}

TEST_F(SteeringTest, a_process_whose_place_changed_finds_the_new_one) {
  auto first = start(8);
  const auto second = start(9), third = start(10);
  first.reset();  // the kernel moves the last one to its place
  EXPECT_EQ(third->steering->place(), 2);
  // It sends probes, and soon not all of them come back.
  for (int i = 0; i < 100 && third->steering->place() != 0; ++i) work(*third);
  EXPECT_EQ(third->steering->place(), 0);
  EXPECT_EQ(come_to(*third, packet_to(queue_pair_of(10))), 10);
  EXPECT_EQ(come_to(*second, packet_to(queue_pair_of(9))), 10);
}

TEST_F(SteeringTest, a_process_whose_datagrams_come_to_others_finds_its_new_place) {
  auto first = start(8);
  const auto second = start(9), third = start(10);
  first.reset();
  now_ += Steering::check_interval;
  third->steering->look(now_);
  settle(*third);
  EXPECT_EQ(third->steering->place(), 0);
}

// Else many processes that the program does not know would look again and again.
TEST_F(SteeringTest, who_looks_in_vain_looks_more_and_more_seldom) {
  const auto only = start(8);
  int rounds = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ += std::chrono::milliseconds(10);
    only->steering->look(now_);
    rounds += only->settle_wanted ? 1 : 0;
    settle(*only);
  }
  EXPECT_LT(rounds, 10);
}

// 20,480 bytes was net.core.optmem_max up to Linux 6.7, and instructions of the kernel's own are as long.
TEST(SteeringProgram, of_the_most_processes_is_not_too_long_for_older_kernels) {
  std::vector<PortPlace> places;
  for (std::uint16_t i = 0; i < 2 * max_steered; ++i) places.push_back({Slot(i + 1), i});
  EXPECT_LT(steering_program(places, {}, shifts).size() * sizeof(sock_filter), 16'384u);
}

TEST_F(SteeringTest, takes_as_many_processes_as_it_says) {
  std::vector<PortPlace> places;
  std::vector<ServicePlace> services;
  for (std::uint16_t i = 0; i < 1000; ++i) {
    places.push_back({Slot(i + 1), i});
    services.push_back({i, i});
  }
  const auto only = start(8);
  std::vector<sock_filter> code = steering_program(places, services, shifts);
  sock_fprog program{};
  program.len = static_cast<unsigned short>(code.size());
  program.filter = code.data();
  EXPECT_EQ(
      ::setsockopt(only->port->descriptor(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program),
      0);
  EXPECT_EQ(come_to(*only, packet_to(queue_pair_of(1))), 10);
}

// Its probes do not come back, as where a flood fills the socket or loopback is down.
TEST_F(SteeringTest, a_process_that_loses_its_probes_keeps_its_place_and_seldom_looks) {
  const auto only = start(8);
  int rounds = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ += Steering::check_interval;
    only->port->receive([](auto) {});  // lost
    only->steering->check(now_);
    rounds += only->settle_wanted ? 1 : 0;
    while (std::exchange(only->settle_wanted, false)) {
      only->port->receive([](auto) {});
      only->steering->settle(now_);
    }
  }
  EXPECT_EQ(only->steering->place(), 0);
  EXPECT_LT(rounds, 15) << "in 100 s";
}

TEST_F(SteeringTest, a_probe_from_another_address_or_with_another_number_is_nobodys) {
  const auto only = start(8), other = start(9);
  const PlaceProbe forged{htonl(probe_magic), htonl(1), htons(0), htons(0)};
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof forged>>(forged);
  EXPECT_EQ(come_to(*only, {bytes.begin(), bytes.end()}), 0);
  EXPECT_EQ(come_to(*only, {bytes.begin(), bytes.end()}, v6_loopback), 0);
  work(*only);
  EXPECT_EQ(only->steering->place(), 0);
}

// It sends probes with every place and many numbers, and packets for the processes, from its own address.
TEST_F(SteeringTest, a_forger_moves_no_process) {
  const auto first = start(8), second = start(9);
  for (std::uint32_t number = 0; number < 200; ++number) {
    const PlaceProbe forged{htonl(probe_magic), htonl(number), htons(static_cast<std::uint16_t>(number % 4)),
                            htons(static_cast<std::uint16_t>(number % 3))};
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof forged>>(forged);
    come_to(*first, {bytes.begin(), bytes.end()}, number % 2 == 0 ? v6_loopback : v4_elsewhere);
    work(*first);
    work(*second);
  }
  EXPECT_EQ(first->steering->place(), 0);
  EXPECT_EQ(second->steering->place(), 1);
  EXPECT_EQ(come_to(*second, packet_to(queue_pair_of(9), 60)), 10);
}

TEST_F(SteeringTest, one_that_begins_is_heard_of_by_the_others) {
  const auto first = start(8), second = start(9);
  take(*first);
  EXPECT_GT(std::exchange(first->heard_of_others, 0), 0);
  work(*first);
  EXPECT_EQ(first->heard_of_others, 0) << "of its own probes";
}

TEST_F(SteeringTest, short_and_strange_packets_are_left_to_the_kernel) {
  const auto first = start(8), second = start(9);
  for (std::size_t bytes = 1; bytes < 80; ++bytes) {
    if (bytes == sizeof(PlaceProbe)) continue;
    for (const std::uint32_t queue_pair : {0u, 1u, queue_pair_of(500)}) {
      const Bytes packet = bytes >= 8 ? packet_to(queue_pair, bytes) : Bytes(bytes);
      const int here = come_to(*first, packet);
      take(*second);
      EXPECT_EQ(here + std::exchange(second->came, 0), 10);
    }
  }
}

}  // namespace
}  // namespace weir::link
