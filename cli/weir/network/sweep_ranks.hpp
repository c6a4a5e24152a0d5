// The interface to the module that splits a sweep over MPI's ranks. The module sees rows as numbers and
// results as bytes, and knows nothing of simulations; plain C, because the two are linked separately.
//
// Rank 0 hands out rows one at a time to whichever thread is free, and collects the results: fast machines do
// more rows, and the results do not depend on which rank computed them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::command {

struct SweepRanksWork {
  std::uint64_t rows;
  std::uint64_t result_bytes;
  std::uint64_t question;  // differs if the ranks do not sweep the same rows
  unsigned threads;        // of this rank
  void* self;
  void (*run)(void* self, std::uint64_t row, void* result);            // from any thread
  void (*arrived)(void* self, std::uint64_t row, const void* result);  // on rank 0, one at a time
  bool (*stopped)(void* self);  // whether to skip the rest; from any thread
};

enum class SweepRanksEnd : int {
  done,     // all results are at rank 0
  stopped,  // as asked; the peers may be gone, so the process ends without MPI_Finalize
  failed,   // `trouble` says why
};

struct SweepRanksOutcome {
  SweepRanksEnd end;
  int rank;
  char trouble[400];
};

inline constexpr const char* sweep_ranks_module = "weir_mpi.so";
inline constexpr const char* sweep_ranks_function = "weir_split_over_ranks";
using SplitOverRanks = SweepRanksOutcome(const SweepRanksWork*);

}  // namespace weir::command
