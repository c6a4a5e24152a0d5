// One TCP stream of frames: its socket and what waits to leave.
//
// Runs are sent as they come. What the kernel does not take waits in a queue of max_queued_bytes, and a run
// that does not fit there is lost, as on a wire: a sender never waits for a receiver that does not read, so
// two ends that both send cannot block each other. Until the two ends have met (begin_runs), runs wait.
//
// Threading: every function from any thread, but receive(), which only one thread may be in at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "link/stream/stream_frame.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

class StreamSocket {
 public:
  static constexpr std::size_t max_queued_bytes = 1 << 20;

  // In `epoll` under that key, which outlives it, from watch() on.
  StreamSocket(UniqueFd socket, int epoll, std::uint64_t key)
      : socket_(std::move(socket)), epoll_(epoll), key_(key) {}
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;

  int descriptor() const { return socket_.get(); }
  bool watch();
  // Out of the set, so that another process may go on with it.
  UniqueFd release();
  // Ends it: the set then reports its end.
  void shut_down();
  void abandon() { socket_.reset(); }  // in a forked child

  // False: it was lost.
  bool send(std::span<const StreamedRun> runs);
  // A short frame of another kind, once the ends have met. False: it was lost.
  bool send_frame(std::span<const std::byte> frame);
  // A frame by which the ends meet: the empty send buffer of a new socket has room for it.
  bool send_greeting(std::span<const std::byte> frame);
  void begin_runs();
  // The kernel takes more, or the connection is made.
  void flush();
  bool has_queued() const;
  bool wait_to_send(std::chrono::milliseconds limit) const;
  void end_sending();  // the peer gets what was sent, and then the end

  // At the end: 0. Nothing there: -1, and errno.
  ssize_t receive(std::span<std::byte> room);

 private:
  // With mutex_ held:
  bool queue(std::span<const StreamedRun> runs, std::size_t already_sent);
  void flush_some();
  void want_to_send(bool wanted);

  UniqueFd socket_;
  const int epoll_;
  const std::uint64_t key_;
  mutable std::mutex mutex_;  // guards everything below
  std::vector<std::byte> queue_;
  std::size_t sent_ = 0;  // of queue_
  bool met_ = false, wants_to_send_ = false;
};

}  // namespace weir::link
