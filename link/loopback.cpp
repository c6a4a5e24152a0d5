#include "link/loopback.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "link/error.hpp"

namespace weir::link {

Loopback::Loopback(Identity identity, std::shared_ptr<ProgressThread> progress, Deliver deliver)
    : identity_(std::move(identity)),
      pid_(::getpid()),
      progress_(std::move(progress)),
      deliver_(std::move(deliver)) {}

Result<Message> Loopback::make(std::uint16_t kind, std::uint64_t request, std::span<const std::byte> body,
                               std::span<const int> fds) const {
  if (!alive()) return failure(std::errc::not_connected, "this process has detached from the link");
  if (body.size() > max_message_bytes || fds.size() > max_message_fds) {
    return failure(std::errc::message_size, "a control message is limited to 8192 bytes and 8 fds");
  }
  Message message{kind, request, {body.begin(), body.end()}, {}};
  for (const int fd : fds) {
    message.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!message.fds.back()) return failure_errno(errno, "cannot copy a descriptor");
  }
  return message;
}

Result<void> Loopback::post(Message message) {
  if (in_flight_.fetch_add(1, std::memory_order_relaxed) >= max_in_flight) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    return failure(std::errc::no_buffer_space,
                   "this process does not handle its own control messages fast enough");
  }
  progress_->post([self = shared_from_this(), held = std::make_shared<Message>(std::move(message))] {
    self->in_flight_.fetch_sub(1, std::memory_order_relaxed);
    const auto request = held->request;
    if (!self->deliver_(self, std::move(*held)) && request != 0) {
      self->calls_.answer(request,
                          failure(std::errc::function_not_supported, "nobody handles this message here"));
    }
  });
  return {};
}

Result<void> Loopback::send(std::uint16_t kind, std::span<const std::byte> body, std::span<const int> fds) {
  auto message = make(kind, 0, body, fds);
  if (!message) return std::unexpected(message.error());
  return post(std::move(*message));
}

Result<Message> Loopback::call(std::uint16_t kind, std::span<const std::byte> body,
                               std::chrono::milliseconds limit, std::span<const int> fds) {
  if (progress_->is_current()) {
    return failure(std::errc::resource_deadlock_would_occur, "the progress thread cannot wait for itself");
  }
  if (!alive()) return failure(std::errc::not_connected, "this process has detached from the link");
  return calls_.run(limit, [&](std::uint64_t number) -> Result<void> {
    auto message = make(kind, number, body, fds);
    if (!message) return std::unexpected(message.error());
    return post(std::move(*message));
  });
}

Result<void> Loopback::reply(const Message& request, std::span<const std::byte> body,
                             std::span<const int> fds) {
  if (request.request == 0)
    return failure(std::errc::invalid_argument, "nobody waits for a reply to this message");
  auto message = make(request.kind, request.request, body, fds);
  if (!message) return std::unexpected(message.error());
  calls_.answer(request.request, std::move(*message));
  return {};
}

void Loopback::close() {
  alive_.store(false, std::memory_order_release);
  calls_.end({std::errc::not_connected, "this process has detached from the link"});
}

}  // namespace weir::link
