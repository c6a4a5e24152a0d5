// Runs the server in the background; the caller that started it learns when it serves, or that it failed.
//
// The process forks before it opens anything. The original process waits until the new one is ready and then
// exits with 0; if the new one ends instead, it exits with the same code. Until then the server keeps its
// standard streams, so that its error messages are seen.
#pragma once

#include <optional>

namespace weir::kv {

class Background {
 public:
  ~Background();

  // Returns twice: nullopt in the new process, which continues, and the exit code in the original process,
  // once the new one serves or has failed.
  std::optional<int> begin();
  // The server serves: lets the original process exit, and gives up its terminal and standard streams.
  void ready();

 private:
  int starter_ = -1;  // a pipe to the process that waits for ready()
};

}  // namespace weir::kv
