// Packets between programs' NICs and the simulated network, through the arena that programs may write.
#include "twin/live_network.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/sim/random.hpp"
#include "twin/schedule.hpp"
#include "wire/roce.hpp"

namespace weir::twin {
namespace {

using link::fabric::Address;
using link::fabric::Arena;
using link::fabric::no_time;
using link::fabric::PacketRecord;
using link::fabric::ThreadState;
using link::fabric::Wait;
using wire::Operation;

constexpr std::uint32_t sender = 0, receiver = 1, first_slot = 1, qp_shift = 14;
constexpr std::uint32_t receivers_qp = (first_slot + receiver) << qp_shift | 5;
constexpr char two_hosts[] = R"(
name = "two hosts"
[[switch]]
name = "s1"
model = "generic-32m"
[[host]]
name = "h1"
[[host]]
name = "h2"
[[link]]
between = ["h1", "s1"]
speed = "100G"
cable = "3m"
[[link]]
between = ["h2", "s1"]
speed = "100G"
cable = "3m"
[[program]]
host = "h1"
command = "true"
)";

Address address_of(std::uint8_t host) {
  Address address{};
  address[10] = address[11] = 0xff;
  address[15] = host;
  return address;
}

class LiveNetworkTest : public testing::Test {
 protected:
  // A process on each host. Its thread 2 i is the program's, and 2 i + 1 its NIC's.
  void begin(const std::string& more = {}) {
    const std::string file = testing::TempDir() + "live_network_test.toml";
    std::ofstream(file) << two_hosts << more;
    fabric::Complaints complaints;
    scenario = load_scenario(file, complaints);
    ASSERT_TRUE(scenario) << complaints.text();
    fabric::sim::Knobs knobs = scenario->network.knobs;
    knobs.duration_ns = fabric::sim::longest_run_ns;
    prepared = fabric::sim::prepare(scenario->network, knobs);
    prepared.experiment.sample_interval = prepared.experiment.deadlock_check = 0;  // no event but packets'
    simulation = std::make_unique<fabric::sim::Simulation>(prepared.fabric, prepared.experiment);
    for (auto& thread : arena->threads) thread.deadline = thread.ready_at = thread.look_at = no_time;
    for (auto& process : arena->processes) {
      process.packet_thread = ~0u;
      process.timer_due = process.alarm_due = no_time;
    }
    network = std::make_unique<LiveNetwork>(*arena, *simulation, *scenario,
                                            std::vector{address_of(1), address_of(2)}, 1);
    arena->threads_used = 4;
    arena->processes_used = 2;
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto& process = arena->processes[i];
      process.pid = 100 + i;
      process.host = i;
      process.nic_slot = first_slot + i;
      process.packet_thread = 2 * i + 1;
      for (std::uint32_t t = 2 * i; t < 2 * i + 2; ++t) {
        arena->threads[t].process = i;
        arena->threads[t].state = static_cast<std::uint32_t>(ThreadState::waiting);
        arena->threads[t].wait = Wait::descriptors;
      }
      arena->threads[2 * i + 1].helper = 1;
    }
  }

  void give(Operation operation, std::uint32_t psn, bool asks, Ticks at = 0) {
    PacketRecord& record = arena->outbox[arena->outbox_used];
    wire::Packet packet;
    packet.bth.opcode = wire::opcode(wire::Service::rc, operation);
    packet.bth.destination = receivers_qp;
    packet.bth.psn = psn;
    packet.bth.ack_request = asks;
    std::array<std::byte, wire::longest_headers> headers{};
    const std::size_t length = wire::encode_headers(packet, 64, headers);
    std::memcpy(arena->slots[record.slot].data(), headers.data(), length);
    record.bytes = static_cast<std::uint16_t>(length + 64 + wire::icrc_bytes);
    record.source = address_of(1);
    record.destination = address_of(2);
    record.queue_pair = first_slot << qp_shift | 5;
    record.time = at;
    ++arena->outbox_used;
  }

  void run() {
    for (int events = 0; network->next_time() != no_time && events < 10'000; ++events) network->advance();
  }
  std::uint32_t inbox() const {
    return arena->processes[receiver].inbox_tail - arena->processes[receiver].inbox_head;
  }
  bool is_woken() const { return arena->threads[2 * receiver + 1].ready_at != no_time; }

  struct Unmap {
    void operator()(Arena* mapped) const { ::munmap(mapped, sizeof(Arena)); }
  };
  std::unique_ptr<Arena, Unmap> arena{static_cast<Arena*>(::mmap(
      nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))};
  std::optional<Scenario> scenario;
  fabric::sim::Prepared prepared;
  std::unique_ptr<fabric::sim::Simulation> simulation;
  std::unique_ptr<LiveNetwork> network;
};

TEST_F(LiveNetworkTest, WakesAProcessForWhatItMustAnswer) {
  begin();
  give(Operation::write_only, 0, true);
  network->collect(sender);
  run();
  EXPECT_EQ(inbox(), 1u);
  EXPECT_TRUE(is_woken());
}

TEST_F(LiveNetworkTest, HoldsBackWhatNobodyNotices) {
  begin();
  give(Operation::write_only, 0, true);
  network->collect(sender);
  run();
  arena->threads[2 * receiver + 1].ready_at = no_time;
  arena->processes[receiver].inbox_head = arena->processes[receiver].inbox_tail;
  network->collect(receiver);
  give(Operation::write_middle, 1, false);
  give(Operation::write_middle, 2, false);
  network->collect(sender);
  run();
  EXPECT_EQ(inbox(), 2u);
  EXPECT_FALSE(is_woken());
  EXPECT_TRUE(network->holds_back(receiver));
  const auto taker = taker_before(*arena, Turn{.thread = 2 * receiver, .at = 1'000'000'000});
  ASSERT_TRUE(taker);
  EXPECT_EQ(taker->thread, 2 * receiver + 1);
}

TEST_F(LiveNetworkTest, HoldsNothingBackFromAThreadThatLooksAtMemory) {
  begin();
  arena->threads[2 * receiver].wait = Wait::memory;
  give(Operation::write_middle, 0, false);
  give(Operation::write_middle, 1, false);
  network->collect(sender);
  run();
  EXPECT_FALSE(network->holds_back(receiver));
}

TEST_F(LiveNetworkTest, LosesWhatAScenarioWantsLost) {
  begin("[[loss]]\nhost = \"h2\"\nfrom = \"1ms\"\nuntil = \"2ms\"\n");
  give(Operation::send_only, 0, true, 0);
  give(Operation::send_only, 1, true, fabric::sim::ticks_per_ms);
  give(Operation::send_only, 2, true, 2 * fabric::sim::ticks_per_ms);
  network->collect(sender);
  run();
  EXPECT_EQ(inbox(), 2u);
  EXPECT_EQ(network->counts().lost_on_purpose, 1u);
  EXPECT_EQ(network->counts().lost, 1u);
}

// A program may write anything over the arena, at any time. That must not harm whoever reads it.
TEST_F(LiveNetworkTest, SurvivesWhatProgramsWriteOverTheArena) {
  begin();
  fabric::sim::Random random(1);
  const std::size_t words = offsetof(Arena, slots) / sizeof(std::uint64_t);
  const auto anywhere = [&]() -> std::size_t {
    // The head of the arena, a thread, a process; rarely some place in an inbox.
    switch (random.below(4)) {
      case 0:
        return random.below(64);
      case 1:
        return (offsetof(Arena, threads) + random.below(5 * sizeof(link::fabric::ThreadRecord))) / 8;
      case 2:
        return (offsetof(Arena, processes) + random.below(3) * sizeof(link::fabric::ProcessRecord) +
                random.below(128)) /
               8;
      default:
        return random.below(static_cast<std::uint32_t>(words));
    }
  };
  for (int round = 0; round < 50'000; ++round) {
    std::uint64_t word = random.next();
    if (random.below(2) == 0) word &= 0x0000'0007'0000'0007;  // often something that means something
    std::memcpy(reinterpret_cast<std::byte*>(arena.get()) + anywhere() * sizeof word, &word, sizeof word);
    const std::uint32_t process = random.below(link::fabric::max_processes);
    switch (random.below(8)) {
      case 0:
        network->collect(process);
        break;
      case 1:
        if (const auto turn = next_turn(*arena)) (void)taker_before(*arena, *turn);
        break;
      case 2:
        release_pollers(*arena, random.below(link::fabric::max_threads), random.next());
        let_look(*arena, random.next());
        break;
      case 3:
        wake_for_packets(*arena, process, random.next());
        (void)will_go_on(*arena);
        break;
      case 4:
        if (random.below(64) == 0) network->process_ended(process);
        break;
      default:
        if (network->next_time() != no_time) (void)network->advance();
    }
  }
  EXPECT_LE(network->counts().delivered, network->counts().sent);
}

}  // namespace
}  // namespace weir::twin
