// Going into the background, so that whoever started the server knows when it serves and whether it does.
//
// The process is forked before it opens anything. The one that was started waits for the other to say that it
// is ready, and ends with 0; if the other ends instead, with that one's exit code. Until then the server
// keeps its standard streams, so that what it has to complain about is seen.
#pragma once

#include <optional>

namespace weir::kv {

class Background {
 public:
  ~Background();

  // Returns twice: with nothing in the new process, which goes on, and with the exit code in the one that was
  // started, once the new one serves or has failed.
  std::optional<int> begin();
  // The server serves: lets the starter end, and leaves its terminal and standard streams.
  void ready();

 private:
  int starter_ = -1;  // a pipe to who waits for ready()
};

}  // namespace weir::kv
