// Runs the same load over several transports, so that their ratios are meaningful: the transports alternate
// within each round, and every figure is the median over the rounds.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "cli/benchmark/options.hpp"
#include "cli/benchmark/progress_line.hpp"
#include "cli/benchmark/surroundings.hpp"

namespace weir::benchmark {

// One transport's figures for one load.
struct Measured {
  client::Transport transport = client::Transport::tcp;
  double ops_per_s = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double max_us = 0;
  double client_cpu_us = 0;   // per request
  double cpu_wait_share = 0;  // of the time: see LoadResult::cpu_wait_ns
  double ratio = 0;           // of ops_per_s to the baseline's (TCP, or else the first row)
  std::vector<double> rounds_ops_per_s;
};

struct Case {
  std::string test;
  std::size_t clients;
  std::size_t pipeline;
  std::vector<Measured> rows;  // in the requested order
};

struct Comparison {
  Surroundings surroundings;
  std::size_t data_bytes;
  std::size_t repeats;
  std::size_t threads;
  client::Transport baseline;
  std::vector<Case> cases;
  std::uint64_t rate_per_s = 0;  // of an open loop; 0: a closed loop
};

// When `stop` is set, it ends with the rounds that are complete by then.
client::Result<Comparison> compare(const Options&, ProgressLine&, const std::atomic<bool>& stop);

std::string as_table(const Comparison&);
std::string as_json(const Comparison&);
// "GET, 1 connection, pipeline 16"
std::string title_of(const Case&);

}  // namespace weir::benchmark
