// One thread of a load: its reactor, its connections, and the loop that drives
// them.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cli/benchmark/key_numbers.hpp"
#include "cli/benchmark/load_connection.hpp"
#include "cli/benchmark/load_plan.hpp"
#include "cli/benchmark/load_share.hpp"
#include "cli/benchmark/load_targets.hpp"
#include "cli/benchmark/workload.hpp"
#include "cli/client/connection.hpp"

namespace weir::benchmark {

std::size_t thread_count(const LoadPlan& plan);

class LoadThread {
 public:
  // Thread number `index`. Everything passed by reference must outlive it.
  LoadThread(const LoadPlan& plan, const Workload& workload, LoadShare& share, std::size_t index);

  // Does everything up to the first request: opens and greets the connections.
  void prepare();
  // Runs until the share ends, with success or an error.
  void run(LoadShare::Time start);

 private:
  void pin();
  void finish_login(LoadConnection& connection);
  void begin(LoadShare::Time start);
  void send_due(LoadShare::Time now);
  std::chrono::nanoseconds longest_turn(LoadShare::Time now) const;
  void reconnect();
  void check_cluster(LoadShare::Time now);
  void check_silence(LoadShare::Time now);
  void report_nodes();

  const LoadPlan& plan_;
  LoadShare& share_;
  LoadTargets targets_;
  KeyNumbers numbers_;
  std::size_t index_;
  LoadConnection::Greeting greeting_;
  std::unique_ptr<client::Reactor> reactor_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  std::size_t next_to_send_ = 0;    // which connection is next in an open loop
  LoadShare::Time next_refresh_{};  // earliest next read of a cluster's map
  std::uint64_t last_done_ = 0;
  LoadShare::Time last_reply_{};  // or the start
};

}  // namespace weir::benchmark
