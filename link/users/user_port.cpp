#include "link/users/user_port.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "link/error.hpp"
#include "link/not_cancelled.hpp"

namespace weir::link {
namespace {

constexpr int listen_backlog = 128;
constexpr int accepts_at_once = 64;
constexpr int wanted_buffer_bytes = 8 << 20;  // the kernel grants less if wmem_max is lower
constexpr std::size_t batch_messages = 8, max_batches_at_once = 8;
constexpr std::size_t most_batches_of_the_dead = 256;
constexpr std::size_t message_bytes =
    run_header_bytes + max_carried_bytes + 1;  // one more byte reveals longer messages

bool hung_up(int socket) {
  pollfd state{socket, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool greet(int socket, Slot slot) {
  const auto greeting = encode_greeting(slot);
  return ::send(socket, greeting.data(), greeting.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(greeting.size());
}

UniqueFd spare_descriptor() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

// Buffers for received messages.
struct UserPort::Batch {
  std::unique_ptr<std::byte[]> bytes =
      std::make_unique_for_overwrite<std::byte[]>(batch_messages * message_bytes);
  std::array<mmsghdr, batch_messages> messages{};
  std::array<iovec, batch_messages> pieces{};

  // Returns the number of messages; the last may be empty, which means the end.
  std::size_t receive(int socket) {
    for (std::size_t i = 0; i < batch_messages; ++i) {
      pieces[i] = {bytes.get() + i * message_bytes, message_bytes};
      messages[i].msg_hdr = {};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int got = ::recvmmsg(socket, messages.data(), batch_messages, MSG_DONTWAIT, nullptr);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  std::span<const std::byte> message(std::size_t i) const {
    return {bytes.get() + i * message_bytes, messages[i].msg_len};
  }
};

Result<std::unique_ptr<UserPort>> UserPort::open(Options options) {
  std::unique_ptr<UserPort> made(new UserPort(std::move(options)));
  if (auto begun = made->begin(); !begun) return std::unexpected(begun.error());
  return made;
}

UserPort::UserPort(Options options) : options_(std::move(options)), batch_(std::make_unique<Batch>()) {}

UserPort::~UserPort() = default;

Result<void> UserPort::begin() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  spare_ = spare_descriptor();
  const bool listens = options_.slot_socket >= 0 && epoll_ &&
                       ::listen(options_.slot_socket, listen_backlog) == 0 &&
                       add(options_.slot_socket, EPOLLIN, slot_key);
  if (!listens) return failure_errno(errno, "cannot listen for programs of other users");
  return {};
}

bool UserPort::add(int socket, std::uint32_t events, Key key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void UserPort::abandon_in_child() {
  epoll_.reset();
  spare_.reset();
  for (auto& [number, process] : by_number_) process->socket.reset();
  for (auto& [key, caller] : incoming_) caller.socket.reset();
  for (auto& [key, lookup] : lookups_) lookup.socket.reset();
  for (auto& [name, service] : services_) service.socket.reset();
}

// ---- connections that we open

// Under mutex_. The place of an ended connection is free at once; receive() reports its end.
UserPort::OutgoingPtr UserPort::outgoing_in(Slot slot) {
  if (slot == 0 || slot >= max_slots || slot == options_.slot || !epoll_) return nullptr;
  auto& place = by_slot_[slot];
  if (place && !hung_up(place->socket.get())) return place;
  place = nullptr;
  auto socket = connect_to_name(name_of_slot(slot));
  const auto who = socket ? identity_of_peer(socket->get()) : std::unexpected(0);
  if (!who || !is_of_another_user(*who)) return nullptr;
  ::setsockopt(socket->get(), SOL_SOCKET, SO_SNDBUF, &wanted_buffer_bytes, sizeof wanted_buffer_bytes);
  const Key key = next_key_++;
  if (!greet(socket->get(), options_.slot) || !add(socket->get(), EPOLLRDHUP, key)) return nullptr;
  place = std::make_shared<Outgoing>(key, slot, std::move(*socket), *who);
  by_number_.emplace(key, place);
  known_.store(by_number_.size(), std::memory_order_relaxed);
  return place;
}

UserPort::Process UserPort::process_in(Slot slot) {
  const NotCancelled whole;
  const std::lock_guard lock(mutex_);
  const OutgoingPtr process = outgoing_in(slot);
  return process ? process->number : 0;
}

// Senders of datagrams ask for each datagram, and most know no other user.
UserPort::Process UserPort::known_in(Slot slot) {
  if (known_.load(std::memory_order_relaxed) == 0) return 0;
  const std::lock_guard lock(mutex_);
  const auto place = by_slot_.find(slot);
  return place != by_slot_.end() && place->second ? place->second->number : 0;
}

UserPort::OutgoingPtr UserPort::outgoing(Process number) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(number);
  return found != by_number_.end() ? found->second : nullptr;
}

int UserPort::send(Process to, const CarriedRun& run) {
  const OutgoingPtr process = outgoing(to);
  if (!process) return ENOTCONN;
  process->sent_to.store(true, std::memory_order_relaxed);
  auto header = encode_run_header(run);
  std::array<iovec, 2> pieces{iovec{header.data(), header.size()},
                              iovec{const_cast<std::byte*>(run.bytes.data()), run.bytes.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  for (;;) {
    if (::sendmsg(process->socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

bool UserPort::waits_to_be_believed() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(by_number_, [](const auto& entry) {
    const Outgoing& process = *entry.second;
    return process.sent_to.load(std::memory_order_relaxed) &&
           !process.has_called_back.load(std::memory_order_relaxed) && !hung_up(process.socket.get());
  });
}

// ---- services

bool UserPort::listen(const std::string& service) {
  const NotCancelled whole;
  const std::lock_guard lock(mutex_);
  if (const auto ours = services_.find(service); ours != services_.end()) {
    ++ours->second.holders;
    return true;
  }
  auto socket = hold_name(service);
  const Key key = next_key_++;
  if (!socket || ::listen(socket->get(), listen_backlog) != 0 || !add(socket->get(), EPOLLIN, key))
    return false;
  services_.emplace(service, Service{std::move(*socket), key, 1});
  return true;
}

void UserPort::leave(const std::string& service) {
  const NotCancelled whole;
  const std::lock_guard lock(mutex_);
  const auto ours = services_.find(service);
  if (ours != services_.end() && --ours->second.holders == 0) services_.erase(ours);
}

std::optional<uid_t> UserPort::other_user_with(const std::string& service) const {
  const auto socket = connect_to_name(service);
  const auto who = socket ? identity_of_peer(socket->get()) : std::unexpected(0);
  return who && is_of_another_user(*who) ? std::optional(who->user) : std::nullopt;
}

bool UserPort::find(const std::string& service, Found found) {
  const NotCancelled whole;
  auto socket = connect_to_name(service);
  const auto who = socket ? identity_of_peer(socket->get()) : std::unexpected(0);
  if (!who || !is_of_another_user(*who)) return false;
  const std::lock_guard lock(mutex_);
  if (lookups_.size() >= max_lookups) return false;
  const Key key = next_key_++;
  const int fd = socket->get();
  lookups_.emplace(key, Lookup{std::move(*socket), *who, std::move(found)});
  if (add(fd, EPOLLIN, key)) return true;
  lookups_.erase(key);
  return false;
}

// The process that has the service has answered with its slot.
void UserPort::finish_lookup(Key key) {
  std::array<std::byte, greeting_bytes + 1> answer;
  std::unique_lock lock(mutex_);
  const auto place = lookups_.find(key);
  if (place == lookups_.end()) return;
  const ssize_t got = ::recv(place->second.socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const Lookup lookup = std::move(place->second);
  lookups_.erase(place);
  const auto slot =
      parse_greeting(std::span(answer).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
  const OutgoingPtr process = slot ? outgoing_in(*slot) : nullptr;
  lock.unlock();
  lookup.found(process && same_process(process->who, lookup.who) ? process->number : 0);
}

// ---- connections that come to us

// Without a free descriptor the caller would stay in the queue and keep the listener readable: turn it away.
UniqueFd UserPort::accept_from(int listener, Identity& who) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket && (errno == EMFILE || errno == ENFILE) && spare_) {
    spare_.reset();
    socket.reset(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    socket.reset();
    spare_ = spare_descriptor();
    return socket;
  }
  if (!socket) return socket;
  const auto peer = identity_of_peer(socket.get());
  who = peer.value_or(Identity{options_.user, 0});
  return socket;
}

void UserPort::accept_all() {
  for (int i = 0; i < accepts_at_once; ++i) {
    Identity who;
    UniqueFd socket = accept_from(options_.slot_socket, who);
    if (!socket) return;
    if (!is_of_another_user(who)) continue;
    make_room_for_stranger();
    const std::lock_guard lock(mutex_);
    const Key key = next_key_++;
    if (!add(socket.get(), EPOLLIN, key)) continue;
    incoming_.emplace(key, Incoming{std::move(socket), who});
  }
}

// The oldest (keys count up) of the user that has the most leaves, so that none keeps another's callers out.
void UserPort::make_room_for_stranger() {
  struct Held {
    std::size_t count = 0;
    Key oldest = 0;
  };
  std::map<uid_t, Held> held;
  std::size_t all = 0;
  for (const auto& [key, caller] : incoming_) {
    if (caller.from != 0) continue;
    Held& of_user = held[caller.who.user];
    if (of_user.count++ == 0) of_user.oldest = key;
    ++all;
  }
  if (all < max_strangers) return;
  const auto fewer = [](const auto& a, const auto& b) { return a.second.count < b.second.count; };
  close_incoming(std::ranges::max_element(held, fewer)->second.oldest);
}

void UserPort::answer_lookups_of(Key key) {
  int listener = -1;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(services_, [key](const auto& entry) { return entry.second.key == key; });
    // A thread that leaves the service closes its socket; our copy stays open for this moment.
    if (found != services_.end()) listener = ::fcntl(found->second.socket.get(), F_DUPFD_CLOEXEC, 0);
  }
  const UniqueFd copy(listener);
  if (!copy) return;
  for (int i = 0; i < accepts_at_once; ++i) {
    Identity who;
    const UniqueFd socket = accept_from(copy.get(), who);
    if (!socket) return;
    if (is_of_another_user(who)) (void)greet(socket.get(), options_.slot);
  }
}

// A caller says which slot it is in: is the process in that slot the one that called?
bool UserPort::believe(Incoming& caller, std::span<const std::byte> greeting) {
  const auto slot = parse_greeting(greeting);
  if (!slot) return false;
  const auto of_user = std::ranges::count_if(incoming_, [&](const auto& entry) {
    return entry.second.from != 0 && entry.second.who.user == caller.who.user;
  });
  if (static_cast<std::size_t>(of_user) >= max_processes_of_user) return false;
  OutgoingPtr process;
  {
    const std::lock_guard lock(mutex_);
    // The caller may have ended after it spoke; then nobody is in its slot any more.
    const auto place = by_slot_.find(*slot);
    if (place != by_slot_.end() && hung_up(caller.socket.get())) process = place->second;
    if (!process || !same_process(process->who, caller.who)) process = outgoing_in(*slot);
  }
  if (!process || !same_process(process->who, caller.who)) return false;
  const auto has_come = [&](const auto& entry) { return entry.second.from == process->number; };
  if (std::ranges::any_of(incoming_, has_come)) return false;
  process->has_called_back.store(true, std::memory_order_relaxed);
  caller.from = process->number;
  caller.slot = *slot;
  return true;
}

// False: the connection has ended.
bool UserPort::take(Incoming& from, std::size_t messages) {
  for (std::size_t i = 0; i < messages; ++i) {
    const auto message = batch_->message(i);
    if (message.empty()) return false;
    if (from.from == 0) {
      if (!believe(from, message)) return false;
      continue;
    }
    const auto run = parse_run(message);
    if (!run) return false;
    arrivals_.push_back({*run, from.from, from.slot});
  }
  return true;
}

void UserPort::read(Key key, const Handler& handler) {
  const auto place = incoming_.find(key);
  if (place == incoming_.end()) return;
  for (std::size_t batches = 0; batches < max_batches_at_once; ++batches) {
    const std::size_t got = batch_->receive(place->second.socket.get());
    if (got == 0) {
      if (errno != EAGAIN && errno != EINTR) close_incoming(key);
      return;
    }
    arrivals_.clear();
    const bool goes_on = take(place->second, got);
    if (!arrivals_.empty()) handler(arrivals_);
    if (!goes_on) return close_incoming(key);
    if (got < batch_messages) return;
  }
}

void UserPort::close_incoming(Key key) {
  const std::lock_guard lock(mutex_);
  incoming_.erase(key);
}

// First takes what the process sent before it ended.
void UserPort::end(Process number, const Handler& handler) {
  accept_all();
  std::vector<Key> open;
  for (const auto& [key, caller] : incoming_)
    if (caller.from == number || caller.from == 0) open.push_back(key);
  for (const Key key : open) {
    for (std::size_t batches = 0; batches < most_batches_of_the_dead; ++batches) {
      const auto caller = incoming_.find(key);
      if (caller == incoming_.end() || !hung_up(caller->second.socket.get())) break;
      read(key, handler);
    }
  }
  std::erase_if(open, [&](Key key) { return !incoming_.contains(key) || incoming_[key].from != number; });
  for (const Key key : open) close_incoming(key);
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    const auto place = by_slot_.find(found->second->slot);
    if (place != by_slot_.end() && (!place->second || place->second->number == number)) by_slot_.erase(place);
    by_number_.erase(found);
    known_.store(by_number_.size(), std::memory_order_relaxed);
  }
  if (options_.gone) options_.gone(number);
}

void UserPort::receive(const Handler& handler) {
  const NotCancelled whole;
  const std::unique_lock alone(receiving_, std::try_to_lock);
  if (!alone || !epoll_) return;
  std::array<epoll_event, 32> events;
  const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (ready <= 0) return;
  const auto all = std::span(events).first(static_cast<std::size_t>(ready));
  std::vector<Process> ended;
  for (const epoll_event& event : all) {
    const Key key = event.data.u64;
    if (key == slot_key) {
      accept_all();
    } else if (incoming_.contains(key)) {
      read(key, handler);
    } else if (outgoing(key)) {
      ended.push_back(key);
    } else {
      finish_lookup(key);
      answer_lookups_of(key);
    }
  }
  for (const Process number : ended) end(number, handler);
}

}  // namespace weir::link
