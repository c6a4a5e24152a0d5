// The line on the terminal that shows a run is alive. Says nothing where standard error is not a terminal.
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
