// The one thread that works for rsockets while no thread of the application does: it takes connections for
// listeners and reads the UDP sockets of datagram rsockets.
//
// It starts with the first descriptor to watch. A forked child has none of its parent's: it gets its own.
// Thread safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "link/unique_fd.hpp"

namespace weir::rsocket {

class Service {
 public:
  static Service& instance();

  // Calls `readable` on the service's thread whenever `fd` is. 0 or an errno.
  int watch(int fd, std::function<void()> readable);
  // When it returns, `readable` does not run and will not. Not from within a callback.
  void forget(int fd);

 private:
  using Call = std::shared_ptr<const std::function<void()>>;
  Service() = default;
  int start();
  void run();

  std::mutex mutex_;
  std::condition_variable finished_;
  link::UniqueFd epoll_;
  bool running_ = false;
  std::map<int, Call> calls_;
  Call current_;
};

}  // namespace weir::rsocket
