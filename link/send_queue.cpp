#include "link/send_queue.hpp"

#include <fcntl.h>

#include <cerrno>

#include "link/error.hpp"
#include "link/frame.hpp"

namespace weir::link {

Result<void> SendQueue::send(int socket, std::vector<std::byte> packet, std::span<const int> fds) {
  if (frames_.empty()) {
    const int error = transmit_frame(socket, packet, fds);
    if (error == 0) return {};
    if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) {
      return failure_errno(ENOTCONN, "the other process is gone");
    }
    if (error != EAGAIN) return failure_errno(error, "cannot send to the other process");
  }
  const bool full = frames_.size() >= max_frames || bytes_ + packet.size() > max_bytes ||
                    (!fds.empty() && with_descriptors_ >= max_frames_with_descriptors);
  if (full) {
    return failure(std::errc::no_buffer_space,
                   "the other process does not read its control messages; it may be stopped");
  }
  Queued queued{std::move(packet), {}};
  for (const int fd : fds) {
    queued.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!queued.fds.back()) return failure_errno(errno, "cannot keep a descriptor for sending");
  }
  bytes_ += queued.packet.size();
  if (!fds.empty()) ++with_descriptors_;
  frames_.push_back(std::move(queued));
  return {};
}

bool SendQueue::flush(int socket) {
  while (!frames_.empty()) {
    const Queued& next = frames_.front();
    std::vector<int> fds;
    for (const auto& fd : next.fds) fds.push_back(fd.get());
    const int error = transmit_frame(socket, next.packet, fds);
    if (error == EAGAIN) return true;
    if (error != 0) return false;
    bytes_ -= next.packet.size();
    if (!next.fds.empty()) --with_descriptors_;
    frames_.pop_front();
  }
  return true;
}

void SendQueue::clear() {
  frames_.clear();
  bytes_ = with_descriptors_ = 0;
}

}  // namespace weir::link
