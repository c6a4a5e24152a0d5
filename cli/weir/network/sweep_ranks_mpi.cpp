// Implements sweep_ranks.hpp with Open MPI. Messages:
//   to rank 0    u64 row and its result: "this is the result, send another row"; or none or over without one
//   from rank 0  u64 row, or over: "no row is left"
// Each thread of the other ranks asks for itself, one at a time (MPI_THREAD_SERIALIZED). On rank 0 only the
// calling thread uses MPI, and its workers take rows from the same counter.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/weir/network/sweep_ranks.hpp"

namespace weir::command {
namespace {

constexpr int to_root = 1, from_root = 2;
constexpr std::uint64_t none = ~std::uint64_t{0}, over = none - 1;
// Runs take milliseconds to minutes. MPI has no descriptor to sleep on, so a waiting thread
// checks again after this time.
constexpr std::chrono::microseconds between_looks(200);

struct Rank {
  const SweepRanksWork& work;
  int rank = 0, size = 1;

  bool stopped() const { return work.stopped(work.self); }
};

class Root {
 public:
  explicit Root(const Rank& rank) : rank_(rank), buffer_(sizeof(std::uint64_t) + rank.work.result_bytes) {}

  // Returns false if it was stopped.
  bool run() {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < rank_.work.threads; ++i) workers.emplace_back([this] { run_rows(); });
    int ranks_left = rank_.size - 1;
    while (ranks_left > 0) {
      if (rank_.stopped()) return false;
      int waiting = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, to_root, MPI_COMM_WORLD, &waiting, &status);
      if (!waiting) {
        std::this_thread::sleep_for(between_looks);
        continue;
      }
      if (serve(status.MPI_SOURCE)) --ranks_left;
    }
    workers.clear();
    return !rank_.stopped();
  }

 private:
  std::uint64_t take() {
    // Relaxed: each number goes to one taker; messages, joins and the mutex publish
    // the rows themselves.
    const std::uint64_t row = next_.fetch_add(1, std::memory_order_relaxed);
    return row < rank_.work.rows ? row : over;
  }

  void run_rows() {
    std::vector<std::byte> result(rank_.work.result_bytes);
    while (!rank_.stopped()) {
      const std::uint64_t row = take();
      if (row == over) return;
      rank_.work.run(rank_.work.self, row, result.data());
      const std::lock_guard lock(arriving_);
      rank_.work.arrived(rank_.work.self, row, result.data());
    }
  }

  // Returns true for the rank's last message.
  bool serve(int source) {
    MPI_Recv(buffer_.data(), static_cast<int>(buffer_.size()), MPI_BYTE, source, to_root, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    std::uint64_t row = 0;
    std::memcpy(&row, buffer_.data(), sizeof row);
    if (row == over) return true;
    if (row < rank_.work.rows) {
      const std::lock_guard lock(arriving_);
      rank_.work.arrived(rank_.work.self, row, buffer_.data() + sizeof row);
    }
    const std::uint64_t answer = take();
    MPI_Send(&answer, sizeof answer, MPI_BYTE, source, from_root, MPI_COMM_WORLD);
    return false;
  }

  const Rank& rank_;
  std::vector<std::byte> buffer_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex arriving_;
};

class Helper {
 public:
  explicit Helper(const Rank& rank) : rank_(rank) {}

  bool run() {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < rank_.work.threads; ++i) workers.emplace_back([this] { run_rows(); });
    run_rows();
    workers.clear();
    if (rank_.stopped()) return false;
    std::vector<std::byte> last(sizeof over + rank_.work.result_bytes);
    std::memcpy(last.data(), &over, sizeof over);
    MPI_Send(last.data(), static_cast<int>(last.size()), MPI_BYTE, 0, to_root, MPI_COMM_WORLD);
    return true;
  }

 private:
  void run_rows() {
    std::vector<std::byte> message(sizeof none + rank_.work.result_bytes);
    std::memcpy(message.data(), &none, sizeof none);
    for (;;) {
      const std::uint64_t row = exchange(message);
      if (row == over) return;
      std::memcpy(message.data(), &row, sizeof row);
      rank_.work.run(rank_.work.self, row, message.data() + sizeof row);
    }
  }

  std::uint64_t exchange(const std::vector<std::byte>& message) {
    const std::lock_guard lock(speaking_);
    if (rank_.stopped()) return over;
    std::uint64_t row = over;
    MPI_Request request;
    MPI_Irecv(&row, sizeof row, MPI_BYTE, 0, from_root, MPI_COMM_WORLD, &request);
    MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, 0, to_root, MPI_COMM_WORLD);
    for (int arrived = 0;;) {
      MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
      if (arrived) return row;
      if (rank_.stopped()) {  // the process ends without MPI_Finalize: nobody takes the answer
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return over;
      }
      std::this_thread::sleep_for(between_looks);
    }
  }

  const Rank& rank_;
  std::mutex speaking_;
};

// The first rank that does not sweep what rank 0 sweeps; 0: none. All ranks get the same answer.
int other_question(const Rank& rank) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(rank.size));
  MPI_Allgather(&rank.work.question, sizeof(std::uint64_t), MPI_BYTE, all.data(), sizeof(std::uint64_t),
                MPI_BYTE, MPI_COMM_WORLD);
  for (int other = 1; other < rank.size; ++other)
    if (all[static_cast<std::size_t>(other)] != all[0]) return other;
  return 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] SweepRanksOutcome weir_split_over_ranks(
    const SweepRanksWork* work) {
  SweepRanksOutcome outcome{};
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_SERIALIZED) {
    outcome.end = SweepRanksEnd::failed;
    std::snprintf(outcome.trouble, sizeof outcome.trouble, "this MPI takes no calls from several threads");
    return outcome;
  }
  Rank rank{*work};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank.size);
  outcome.rank = rank.rank;
  if (const int other = other_question(rank); other != 0) {
    outcome.end = SweepRanksEnd::failed;
    std::snprintf(
        outcome.trouble, sizeof outcome.trouble,
        "rank %d does not sweep what rank 0 does; give every machine the same files, command line and Weir",
        other);
    MPI_Finalize();
    return outcome;
  }
  const bool whole = rank.rank == 0 ? Root(rank).run() : Helper(rank).run();
  outcome.end = whole ? SweepRanksEnd::done : SweepRanksEnd::stopped;
  if (whole) MPI_Finalize();
  return outcome;
}

}  // namespace weir::command
