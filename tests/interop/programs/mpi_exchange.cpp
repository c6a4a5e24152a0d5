// A small MPI program for any MPI and any number of ranks: a ring of messages, all-reduces, the heat equation
// on strips, and one-sided windows. Each part compares its result with what one process computes alone; the
// first difference ends the program with status 1.
//
// usage: mpi_exchange PART       PART: ring, allreduce, heat, window
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

int rank = 0;
int ranks = 0;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "rank %d: WRONG: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// A message starts at rank 0 and goes around once; each rank adds 1 to all of its numbers. Small messages are
// sent eagerly, large ones by rendezvous, which reads them from the sender's memory.
void ring() {
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  for (const std::size_t count : {1, 100, 5'000, 70'000, 1'000'000}) {
    std::vector<std::uint32_t> numbers(count);
    if (rank == 0) {
      std::iota(numbers.begin(), numbers.end(), 7U);
      MPI_Send(numbers.data(), static_cast<int>(count), MPI_UINT32_T, next, 3, MPI_COMM_WORLD);
    }
    MPI_Recv(numbers.data(), static_cast<int>(count), MPI_UINT32_T, previous, 3, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (rank != 0) {
      std::ranges::for_each(numbers, [](std::uint32_t& number) { ++number; });
      MPI_Send(numbers.data(), static_cast<int>(count), MPI_UINT32_T, next, 3, MPI_COMM_WORLD);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      require(numbers[i] == 7 + i + static_cast<std::size_t>(ranks) - 1,
              "a number that came around the ring");
    }
  }
}

void allreduce() {
  for (const std::size_t count : {1, 33, 4'096, 300'000}) {
    std::vector<std::int64_t> mine(count);
    std::vector<std::int64_t> sum(count);
    for (std::size_t i = 0; i < count; ++i) {
      mine[i] = static_cast<std::int64_t>(i) * (rank + 1);
    }
    MPI_Allreduce(mine.data(), sum.data(), static_cast<int>(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    const std::int64_t factor = std::int64_t{ranks} * (ranks + 1) / 2;
    for (std::size_t i = 0; i < count; ++i) {
      require(sum[i] == static_cast<std::int64_t>(i) * factor, "a sum over all ranks");
    }
  }
}

// One row of temperatures with its ends held at 0 and 100; a step replaces each by the mean of itself and its
// neighbours.
constexpr std::size_t cells = 24'000;
constexpr int steps = 400;

void step(const std::vector<double>& from, std::vector<double>& to) {
  for (std::size_t i = 1; i + 1 < from.size(); ++i) {
    to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
  }
}

double start_temperature(std::size_t cell) {
  return cell == cells - 1 ? 100 : static_cast<double>(cell % 50);
}

std::vector<double> heat_alone() {
  std::vector<double> now(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    now[i] = start_temperature(i);
  }
  std::vector<double> next = now;
  for (int i = 0; i < steps; ++i) {
    step(now, next);
    std::swap(now, next);
  }
  return now;
}

// The same arithmetic in the same order on strips, with one cell of each neighbour at both ends: equal to the
// last bit.
void heat() {
  const std::size_t width = cells / static_cast<std::size_t>(ranks);
  require(width * static_cast<std::size_t>(ranks) == cells, "the number of ranks must divide 24000");
  const std::size_t first = width * static_cast<std::size_t>(rank);
  const int left = rank == 0 ? MPI_PROC_NULL : rank - 1;
  const int right = rank == ranks - 1 ? MPI_PROC_NULL : rank + 1;
  std::vector<double> now(width + 2);
  for (std::size_t i = 0; i < width; ++i) {
    now[i + 1] = start_temperature(first + i);
  }
  std::vector<double> next = now;
  for (int i = 0; i < steps; ++i) {
    MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 1, &now[width + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&now[width], 1, MPI_DOUBLE, right, 2, &now[0], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    step(now, next);
    if (left == MPI_PROC_NULL) {
      next[1] = now[1];
    }
    if (right == MPI_PROC_NULL) {
      next[width] = now[width];
    }
    std::swap(now, next);
  }
  std::vector<double> whole(rank == 0 ? cells : 0);
  MPI_Gather(&now[1], static_cast<int>(width), MPI_DOUBLE, whole.data(), static_cast<int>(width), MPI_DOUBLE,
             0, MPI_COMM_WORLD);
  if (rank == 0) {
    require(whole == heat_alone(), "a temperature");
  }
}

// Every rank adds to a counter at rank 0 and puts its own number into a place at every rank.
void window() {
  constexpr int turns = 50;
  std::vector<std::int64_t> memory(static_cast<std::size_t>(ranks) + 1);
  MPI_Win shared = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof memory[0]), sizeof memory[0],
                 MPI_INFO_NULL, MPI_COMM_WORLD, &shared);
  const std::int64_t one = 1;
  const std::int64_t mark = 1'000 + rank;
  MPI_Win_lock_all(0, shared);
  for (int i = 0; i < turns; ++i) {
    std::int64_t before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, shared);
    MPI_Win_flush(0, shared);
  }
  for (int target = 0; target < ranks; ++target) {
    MPI_Put(&mark, 1, MPI_INT64_T, target, rank + 1, 1, MPI_INT64_T, shared);
  }
  MPI_Win_unlock_all(shared);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, shared);
  require(rank != 0 || memory[0] == std::int64_t{turns} * ranks, "the counter that all added to");
  for (int source = 0; source < ranks; ++source) {
    require(memory[static_cast<std::size_t>(source) + 1] == 1'000 + source, "what a rank put here");
  }
  MPI_Win_unlock(rank, shared);
  MPI_Win_free(&shared);
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"ring", ring}, {"allreduce", allreduce}, {"heat", heat}, {"window", window}};
  const auto* part = std::ranges::find_if(
      parts, [&](const auto& row) { return count == 2 && !std::strcmp(row.name, words[1]); });
  require(part != std::end(parts), "usage: mpi_exchange ring|allreduce|heat|window");
  part->run();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%s: %d ranks, right\n", part->name, ranks);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}
