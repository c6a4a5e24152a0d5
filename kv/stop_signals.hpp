// SIGINT and SIGTERM, received in the event loop.
//
// They come through a signalfd and not through asio::signal_set: that one ignores errors of its pipe, and
// then a signal is lost, or the server hangs. Here an error throws when the object is made, and a later one
// only delays the signal, which the kernel keeps.
//
// Threading: the thread of the event loop. It must be made before other threads are, which block these
// signals from then on.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <functional>

namespace weir::kv {

class StopSignals {
 public:
  // Throws std::system_error.
  StopSignals(asio::io_context& io, std::function<void(int number)> received);

  void cancel();

 private:
  void wait();
  void take();

  asio::posix::stream_descriptor signals_;
  asio::steady_timer retry_;
  std::function<void(int number)> received_;
};

}  // namespace weir::kv
