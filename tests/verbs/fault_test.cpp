// A process is killed, stopped or replaced (exec) at a random moment under load, as a target and as an
// initiator, many times: what the other side sees is in order and whole, ends with the right errors,
// and leaves nothing behind.
//
// WEIR_FAULT_ROUNDS: the number of repetitions (default 25). WEIR_FAULT_SEED: the seed of a failed run.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "link/same_host.hpp"
#include "peer_process.hpp"

namespace weir::verbs_test {
namespace {

constexpr std::size_t memory_bytes = 1u << 20;
constexpr std::size_t message_bytes = 20'000;  // through the kernel or the mover where it is not mapped
constexpr std::uint64_t receive_ids = 1'000'000'000;
constexpr auto patience = std::chrono::seconds(60);

enum class Fault { kill, stop, exec };
enum class Role { target, initiator };  // the role of the failing process
struct Scene {
  Fault fault;
  Role role;
  const char* name;
};

std::uint32_t number_in(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10))
                                          : otherwise;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("weir-segment") != std::string::npos;
  return count;
}

class FaultTest : public testing::TestWithParam<Scene> {
 protected:
  FaultTest() : seed(number_in("WEIR_FAULT_SEED", std::random_device()())), random(seed) {}

  // One round's two ends. The peer's messages carry the round's number; ours are not checked.
  struct Round {
    explicit Round(std::mt19937& random)
        : side(random() % 2 == 0 ? MemoryKind::ordinary : MemoryKind::shared, memory_bytes) {}
    PeerProcess peer;
    Side side;
    SideAddress far;
    std::uint64_t posted = 0, completed = 0;   // of ours
    std::uint64_t receives = 0, received = 0;  // receives posted, and what became of them
    std::optional<ibv_wc_status> send_error;   // the first
    bool flushing = false;                     // of receives
  };

  void connect(Round& round) {
    const auto kind = random() % 2 == 0 ? MemoryKind::ordinary : MemoryKind::shared;
    round.far = round.peer.order({.order = Order::open, .kind = kind, .length = memory_bytes}).address;
    ASSERT_EQ(round.peer.order({.order = Order::connect, .peer = round.side.address()}).error, 0);
    ASSERT_EQ(bring_up(round.side.qp.get(), round.far.qpn), 0);
    ASSERT_EQ(round.peer.order({.order = Order::fill, .seed = seed}).error, 0);
    fill(expected, seed);
  }

  void keep_busy(Round& round) {
    static constexpr ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                                IBV_WR_RDMA_WRITE_WITH_IMM};
    if (GetParam().role == Role::target) {
      const std::size_t length = random() % 2 == 0 ? message_bytes : random() % 64;
      if (round.side.post(opcodes[random() % 4], round.posted, length, round.far) == 0) ++round.posted;
      return;
    }
    const std::size_t places = memory_bytes / message_bytes;
    while (round.side.receive(receive_ids + round.receives, round.receives % places * message_bytes,
                              message_bytes) == 0)
      ++round.receives;
  }

  void take(Round& round, const ibv_wc& wc) {
    if (wc.wr_id < receive_ids) {
      ASSERT_EQ(wc.wr_id, round.completed++) << "out of order, lost or twice";
      if (round.send_error) {
        ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      }
      if (wc.status != IBV_WC_SUCCESS && !round.send_error) round.send_error = wc.status;
      return;
    }
    ASSERT_EQ(wc.wr_id, receive_ids + round.received) << "out of order, lost or twice";
    if (wc.status == IBV_WC_SUCCESS) {
      ASSERT_FALSE(round.flushing) << "a message after a flush";
      ASSERT_EQ(wc.imm_data, round.received);
      const auto* at =
          round.side.bytes().data() + round.received % (memory_bytes / message_bytes) * message_bytes;
      ASSERT_EQ(std::memcmp(at, expected.data(), wc.byte_len), 0) << "a message with half its bytes";
    } else {
      ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      round.flushing = true;
    }
    ++round.received;
  }

  // Load until `done`.
  template <class Done>
  void run(Round& round, Done done) {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up)
          << "hangs: sends " << round.completed << " of " << round.posted << ", receives " << round.received;
      keep_busy(round);
      while (const auto wc = poll_once(round.side.cq.get())) ASSERT_NO_FATAL_FAILURE(take(round, *wc));
      if (GetParam().role == Role::initiator) ::sched_yield();
    }
  }
  std::uint64_t progress(const Round& round) const {
    return GetParam().role == Role::target ? round.completed : round.received;
  }
  void run_for(Round& round, std::uint64_t more) {
    run(round, [&, until = progress(round) + more] { return progress(round) >= until; });
  }

  void start_load(Round& round) {
    if (GetParam().role == Role::target)
      round.peer.start({.order = Order::serve, .length = message_bytes});
    else
      round.peer.start({.order = Order::send_on,
                        .length = random() % 2 == 0 ? message_bytes : 1 + random() % 64,
                        .peer = round.side.address()});
  }

  // The other process does not answer any more: the errors, and everything that was posted comes back.
  void expect_the_end(Round& round) {
    run(round, [&] { return round.send_error || round.flushing; });
    const ibv_wc_status error = round.send_error.value_or(IBV_WC_WR_FLUSH_ERR);
    EXPECT_TRUE(error == IBV_WC_RETRY_EXC_ERR || error == IBV_WC_WR_FLUSH_ERR) << ibv_wc_status_str(error);
    while (round.completed < round.posted || round.received < round.receives) {
      const auto wc = wait_for(round.side.cq.get());
      ASSERT_TRUE(wc) << "sends " << round.completed << " of " << round.posted << ", receives "
                      << round.received << " of " << round.receives;
      ASSERT_NO_FATAL_FAILURE(take(round, *wc));
    }
    EXPECT_FALSE(poll_once(round.side.cq.get()));
  }

  void play() {
    Round round(random);
    ASSERT_NO_FATAL_FAILURE(connect(round));
    start_load(round);
    ASSERT_NO_FATAL_FAILURE(run_for(round, random() % 60));
    for (std::uint32_t i = random() % 200; i > 0; --i) ::sched_yield();
    if (GetParam().fault == Fault::stop) {
      for (int times = 0; times < 3; ++times) {
        round.peer.stop();
        for (std::uint32_t i = random() % 20; i > 0; --i) {
          keep_busy(round);
          while (const auto wc = poll_once(round.side.cq.get())) ASSERT_NO_FATAL_FAILURE(take(round, *wc));
        }
        round.peer.go_on();
        ASSERT_NO_FATAL_FAILURE(run_for(round, 40));
        ASSERT_FALSE(round.send_error || round.flushing) << "it was only stopped";
      }
      round.peer.kill();
    } else if (GetParam().fault == Fault::exec) {
      round.peer.exec_again();
    } else {
      round.peer.kill();
    }
    ASSERT_NO_FATAL_FAILURE(expect_the_end(round));
    if (GetParam().fault == Fault::exec) {
      EXPECT_EQ(round.peer.leave(), 0) << "what it became lives";
    }
  }

  std::uint32_t seed;
  std::mt19937 random;
  std::vector<std::uint8_t> expected = std::vector<std::uint8_t>(memory_bytes);
};

INSTANTIATE_TEST_SUITE_P(Of, FaultTest,
                         testing::Values(Scene{Fault::kill, Role::target, "a_killed_target"},
                                         Scene{Fault::kill, Role::initiator, "a_killed_initiator"},
                                         Scene{Fault::stop, Role::target, "a_paused_target"},
                                         Scene{Fault::stop, Role::initiator, "a_paused_initiator"},
                                         Scene{Fault::exec, Role::target, "a_target_that_execs"},
                                         Scene{Fault::exec, Role::initiator, "an_initiator_that_execs"}),
                         [](const auto& scene) { return scene.param.name; });

TEST_P(FaultTest, leaves_the_other_side_whole) {
  std::printf("WEIR_FAULT_SEED=%u\n", seed);
  const std::uint32_t rounds = number_in("WEIR_FAULT_ROUNDS", 25);
  use_own_runtime_directory();
  const Context keeps_the_nic = open_device();
  for (std::uint32_t i = 0; i < rounds && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(i));
    const std::size_t descriptors = open_descriptors();
    ASSERT_NO_FATAL_FAILURE(play());
    // It takes a moment to notice that a process has ended.
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (open_descriptors() > descriptors || mapped_segments() > 1) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up)
          << "left: " << mapped_segments() << " segments; " << open_descriptors() << " descriptors, before "
          << descriptors;
      ::sched_yield();
    }
  }
  // The next process cleans up after the last; then only our own slot and the lock remain.
  PeerProcess last;
  last.order({.order = Order::open, .length = memory_bytes});
  EXPECT_EQ(last.leave(), 0);
  const std::filesystem::directory_iterator names(
      link::SameHostLink::default_directory(::getenv("WEIR_RUNTIME_DIR")));
  EXPECT_EQ(std::distance(begin(names), end(names)), 2);
}

}  // namespace
}  // namespace weir::verbs_test
