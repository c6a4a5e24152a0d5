// Frames that the kernel did not take yet, in order, with their own copies of the descriptors they carry.
//
// Bounded in frames and bytes; full means errc::no_buffer_space and that the peer is not reading. The bounds
// leave room for everything that must not be lost on the way to a slow or stopped process. There is at most
// one such message for each thing that process owns: the event of a completion queue that is not polled until
// the event comes, a receive that is given back. Frames with descriptors hold some of our own descriptors
// while they wait, so their bound is lower. Not thread-safe: the connection's mutex guards it.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "link/same_host.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

class SendQueue {
 public:
  static constexpr std::size_t max_frames = 1 << 16;
  static constexpr std::size_t max_frames_with_descriptors = 1024;
  static constexpr std::size_t max_bytes = 8 << 20;

  bool empty() const { return frames_.empty(); }

  // Hands the frame to the socket, or queues it behind others or when the socket is full.
  Result<void> send(int socket, std::vector<std::byte> packet, std::span<const int> fds);
  // Hands over what the socket takes now. False: the connection is broken.
  bool flush(int socket);
  void clear();

 private:
  struct Queued {
    std::vector<std::byte> packet;
    std::vector<UniqueFd> fds;
  };
  std::deque<Queued> frames_;
  std::size_t bytes_ = 0, with_descriptors_ = 0;
};

}  // namespace weir::link
