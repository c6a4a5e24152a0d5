// The line that shows on a terminal that a run is alive. Prints nothing if standard error is no terminal.
#pragma once

#include <cstdint>
#include <string>

#include "cli/benchmark/load.hpp"

namespace weir::benchmark {

class ProgressLine final : public LoadWatcher {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }

  void begin(std::string title) { title_ = std::move(title); }
  void running(std::uint64_t requests_done, double elapsed_s) override;
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
  std::string title_;
};

}  // namespace weir::benchmark
