// The seam to the module that splits a sweep over MPI's ranks. The module knows rows by their number and
// results as bytes, and nothing of simulations; plain C, because the two are linked apart.
//
// Rank 0 gives out rows one at a time, to whoever is free, and collects what they became: fast machines do
// more of them, and what the rows are does not depend on who ran them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::command {

struct SweepRanksWork {
  std::uint64_t rows;
  std::uint64_t result_bytes;
  std::uint64_t question;  // differs where the ranks do not sweep the same thing
  unsigned threads;        // of this rank
  void* self;
  void (*run)(void* self, std::uint64_t row, void* result);            // from any thread
  void (*arrived)(void* self, std::uint64_t row, const void* result);  // on rank 0, one at a time
  bool (*stopped)(void* self);  // whether to leave the rest; from any thread
};

enum class SweepRanksEnd : int {
  done,     // all rows are at rank 0
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
