#include "link/connection.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "link/abstract_socket.hpp"
#include "link/error.hpp"

namespace weir::link {
namespace {

constexpr int frames_per_turn = 64;  // then other descriptors and timers get their turn
constexpr int frames_at_end = 4096;  // more than the buffer of a socket holds

Error gone() { return {std::errc::not_connected, "the other process is gone"}; }

bool too_big(std::span<const std::byte> body, std::span<const int> fds) {
  return body.size() > max_message_bytes || fds.size() > max_message_fds;
}

}  // namespace

Connection::Connection(UniqueFd socket, Slot dialed, std::shared_ptr<ProgressThread> progress, Owner& owner)
    : dialed_(dialed), progress_(std::move(progress)), owner_(owner), socket_(std::move(socket)) {}

Result<Connection::Ptr> Connection::open(UniqueFd socket, Slot dialed,
                                         std::shared_ptr<ProgressThread> progress, Owner& owner) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return failure_errno(errno, "cannot tell who is at the other end");
  }
  const int fd = socket.get();
  Ptr made(new Connection(std::move(socket), dialed, std::move(progress), owner));
  made->pid_ = credentials.pid;
  made->uid_ = credentials.uid;
  if (auto process = pidfd_of_peer(fd)) {
    made->process_ = std::move(*process);
  } else if (process.error() == ENOPROTOOPT && credentials.pid > 0) {
    made->process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, credentials.pid, 0)));
  }
  // The connection lives in its callback until end() removes it.
  auto key = made->progress_->add(fd, EPOLLIN, [made](std::uint32_t events) { made->ready(events); });
  if (!key) return std::unexpected(key.error());
  made->socket_key_ = *key;
  return made;
}

Result<void> Connection::transmit(FrameType type, std::uint16_t kind, std::uint64_t request,
                                  std::span<const std::byte> body, std::span<const int> fds) {
  auto packet = encode_frame(type, kind, request, body, fds.size());
  const std::scoped_lock hold(mutex_);
  if (!socket_) return std::unexpected(gone());
  auto sent = queue_.send(socket_.get(), std::move(packet), fds);
  if (!queue_.empty()) progress_->change(socket_key_, EPOLLIN | EPOLLOUT);
  return sent;
}

Result<void> Connection::send(std::uint16_t kind, std::span<const std::byte> body, std::span<const int> fds) {
  if (too_big(body, fds))
    return failure(std::errc::message_size, "a control message is limited to 8192 bytes and 8 fds");
  if (progress_->abandoned() || !alive()) return std::unexpected(gone());
  return transmit(FrameType::message, kind, 0, body, fds);
}

Result<Message> Connection::call(std::uint16_t kind, std::span<const std::byte> body,
                                 std::chrono::milliseconds limit, std::span<const int> fds) {
  if (too_big(body, fds))
    return failure(std::errc::message_size, "a control message is limited to 8192 bytes and 8 fds");
  if (progress_->is_current()) {
    return failure(std::errc::resource_deadlock_would_occur,
                   "the progress thread cannot wait for a reply it must read");
  }
  if (progress_->abandoned() || !alive()) return std::unexpected(gone());
  return calls_.run(
      limit, [&](std::uint64_t number) { return transmit(FrameType::message, kind, number, body, fds); });
}

Result<void> Connection::reply(const Message& request, std::span<const std::byte> body,
                               std::span<const int> fds) {
  if (too_big(body, fds))
    return failure(std::errc::message_size, "a control message is limited to 8192 bytes and 8 fds");
  if (request.request == 0)
    return failure(std::errc::invalid_argument, "nobody waits for a reply to this message");
  if (progress_->abandoned() || !alive()) return std::unexpected(gone());
  return transmit(FrameType::reply, request.kind, request.request, body, fds);
}

Result<void> Connection::send_hello(Slot own_slot, std::uint64_t own_incarnation,
                                    const Greeting& own_greeting) {
  const HelloPrefix prefix{.slot = own_slot, .zero = {}, .incarnation = own_incarnation};
  std::vector<std::byte> body(sizeof prefix);
  std::memcpy(body.data(), &prefix, sizeof prefix);
  body.insert(body.end(), own_greeting.body.begin(), own_greeting.body.end());
  std::vector<int> fds;
  for (const auto& fd : own_greeting.fds) fds.push_back(fd.get());
  return transmit(FrameType::hello, 0, 0, body, fds);
}

void Connection::establish(Identity identity) {
  identity_ = std::move(identity);
  state_ = State::established;
  watch_process();
  alive_.store(true, std::memory_order_release);
}

bool Connection::process_ended() const {
  if (!process_) return pid_ > 0 && ::kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd ended{process_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

// The socket ends with the process, unless another process holds a copy of it, such as a forked child.
void Connection::watch_process() {
  if (!process_) return;  // not visible from our pid namespace, or ended, and the socket will say so
  auto key = progress_->add(process_.get(), EPOLLIN,
                            [self = shared_from_this()](std::uint32_t) { self->drain_and_end(); });
  if (key) process_key_ = *key;
}

void Connection::refuse(Refusal why) {
  const auto reason = static_cast<std::byte>(why);
  (void)transmit(FrameType::refuse, 0, 0, {&reason, 1}, {});  // a courtesy: the peer also understands the end
  close_quietly();
}

void Connection::refuse_request(const Message& request) {
  if (request.request != 0) (void)transmit(FrameType::no_handler, request.kind, request.request, {}, {});
}

void Connection::ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  for (int i = 0; i < frames_per_turn && state_ != State::ended; ++i) {
    if (!receive_some()) return;
  }
}

void Connection::flush() {
  const std::scoped_lock hold(mutex_);
  if (!socket_) return;
  // A broken socket also reports itself readable, and reading is what ends the connection, in order.
  if (!queue_.flush(socket_.get())) queue_.clear();
  if (queue_.empty()) progress_->change(socket_key_, EPOLLIN);
}

bool Connection::receive_some() {
  // Only this thread closes the socket, so it may read without the lock.
  auto received = receive_frame(socket_.get());
  if (std::holds_alternative<WouldBlock>(received)) return false;
  if (auto* frame = std::get_if<Frame>(&received)) {
    take(std::move(*frame));
  } else {
    end();
  }
  return state_ != State::ended;
}

void Connection::take(Frame frame) {
  const auto self = shared_from_this();
  if (state_ == State::fresh) {
    if (frame.type == FrameType::hello) {
      const auto hello = parse_hello(frame.body);
      if (!hello) return end();
      Identity identity{.slot = hello->prefix.slot,
                        .incarnation = hello->prefix.incarnation,
                        .greeting = {{hello->greeting.begin(), hello->greeting.end()}, std::move(frame.fds)}};
      return owner_.hello_arrived(self, std::move(identity));
    }
    if (frame.type == FrameType::refuse && dialed_ != 0 && frame.body.size() == 1) {
      return owner_.refused(self, static_cast<Refusal>(frame.body[0]));
    }
    return end();
  }
  const auto request = frame.request;
  Message message{frame.kind, request, std::move(frame.body), std::move(frame.fds)};
  switch (frame.type) {
    case FrameType::message:
      return owner_.message_arrived(self, std::move(message));
    case FrameType::reply:
      return calls_.answer(request, std::move(message));
    case FrameType::no_handler:
      return calls_.answer(request, failure(std::errc::function_not_supported,
                                            "the other process does not handle this message"));
    case FrameType::hello:
    case FrameType::refuse:
      return end();
  }
}

void Connection::drain_and_end() {
  // Bounded, because a child of that process may hold the socket and go on sending.
  for (int i = 0; i < frames_at_end && state_ != State::ended; ++i) {
    if (!receive_some()) break;
  }
  end();
}

void Connection::end() {
  if (state_ == State::ended) return;
  const auto self = shared_from_this();
  close_quietly();
  owner_.ended(self);
}

void Connection::close_quietly() {
  state_ = State::ended;
  alive_.store(false, std::memory_order_release);
  const auto self = shared_from_this();  // the callbacks may hold the last references
  // Before the descriptors are closed: epoll forgets a closed descriptor only if no child holds a copy of it.
  if (process_key_ != 0) progress_->remove(process_key_);
  progress_->remove(socket_key_);
  {
    const std::scoped_lock hold(mutex_);
    socket_.reset();
    queue_.clear();
  }
  process_.reset();
  calls_.end(gone());
}

void Connection::abandon_after_fork() {
  alive_.store(false, std::memory_order_release);
  socket_.reset();
  process_.reset();
}

}  // namespace weir::link
