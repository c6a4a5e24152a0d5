#include "link/stream/stream_port.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "link/error.hpp"
#include "link/random_number.hpp"
#include "link/udp/socket_address.hpp"

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

namespace weir::link {
namespace {

constexpr int listen_backlog = 128, accepts_at_once = 16;
constexpr std::size_t read_bytes = 256 * 1024;
constexpr int reads_at_once = 4;
constexpr std::size_t longest_frame = frame_header_bytes + max_streamed_bytes;
constexpr std::size_t max_refusals = 1024;
constexpr std::chrono::milliseconds first_pause{100}, longest_pause{10'000};
constexpr int silence_ms = 10'000;  // of the other end's kernel, then the connection has ended

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

// A router forgets connections on which nothing goes for long.
void set_up(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, silence_ms);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
}

struct SeenAddress {
  IpAddress ip{};
  std::uint32_t interface = 0;
};
SeenAddress address_of(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &from, sizeof v4);
    return {ip_of(v4.sin_addr), 0};
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &from, sizeof v6);
  return {ip_of(v6.sin6_addr), v6.sin6_scope_id};
}
SeenAddress other_end_of(int socket) {
  sockaddr_storage from{};
  socklen_t bytes = sizeof from;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&from), &bytes) == 0 ? address_of(from)
                                                                                : SeenAddress{};
}
IpAddress own_end_of(int socket) {
  sockaddr_storage from{};
  socklen_t bytes = sizeof from;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&from), &bytes) == 0 ? address_of(from).ip
                                                                                : IpAddress{};
}

std::string text_of(const IpAddress& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_v4(ip);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, ip.data() + (v4 ? mapped.size() : 0), text.data(), text.size());
  return text.data();
}

StreamNonce new_nonce() {
  const std::array<std::uint64_t, 2> drawn{random_number(), random_number()};
  StreamNonce nonce;
  std::memcpy(nonce.data(), drawn.data(), nonce.size());
  return nonce;
}

UniqueFd spare_descriptor() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

UniqueFd listen_at(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool ipv6 = static_cast<bool>(socket);
  if (!ipv6) socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  if (ipv6) set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  const SocketAddress any(ipv6, {}, port);
  if (::bind(socket.get(), any.get(), any.bytes) != 0 || ::listen(socket.get(), listen_backlog) != 0)
    socket.reset();
  return socket;
}

// A connection on its way; none: there is no way there from that address.
UniqueFd begin_connection(const StreamPort::Ends& ends, std::uint16_t port) {
  const bool v6 = !is_v4(ends.peer);
  UniqueFd socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  set_up(socket.get());
  set(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const SocketAddress from(v6, ends.own, 0, ends.interface), to(v6, ends.peer, port, ends.interface);
  if (::bind(socket.get(), from.get(), from.bytes) != 0 ||
      (::connect(socket.get(), to.get(), to.bytes) != 0 && errno != EINPROGRESS))
    socket.reset();
  return socket;
}

}  // namespace

Result<std::unique_ptr<StreamPort>> StreamPort::open(Options options) {
  std::unique_ptr<StreamPort> made(new StreamPort(std::move(options)));
  if (auto begun = made->begin(); !begun) return std::unexpected(begun.error());
  return made;
}

StreamPort::StreamPort(Options options) : options_(std::move(options)), buffer_(longest_frame + read_bytes) {}

StreamPort::~StreamPort() = default;

Result<void> StreamPort::begin() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  spare_ = spare_descriptor();
  if (!epoll_) return failure_errno(errno, "cannot wait for streams from other hosts");
  listener_ = listen_at(options_.port);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = listener_key;
  if (listener_ && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0) return {};
  return failure_errno(errno,
                       "cannot listen on TCP port " + std::to_string(options_.port) +
                           " for packets of other hosts; end the program that has it, or choose another "
                           "port at both ends (--carrier tcp:PORT)");
}

void StreamPort::abandon_in_child() {
  for (auto& [key, stream] : streams_) stream->socket.abandon();
  epoll_.reset();
  listener_.reset();
  spare_.reset();
}

// ---- ways

StreamPort::StreamPtr StreamPort::find(const To& target) const {
  const auto found = ways_.find(target);
  return found != ways_.end() ? found->second : nullptr;
}

std::optional<Slot> StreamPort::peer_at(const Ends& ends, const StreamTarget& target) const {
  const std::lock_guard lock(mutex_);
  const StreamPtr stream = find(to(ends, target));
  return stream && stream->state == State::open ? std::optional(stream->peer_slot) : std::nullopt;
}

bool StreamPort::leads_to_host(const IpAddress& peer) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(streams_, [&](const auto& entry) {
    return entry.second->state == State::open && entry.second->ends.peer == peer;
  });
}

bool StreamPort::any_to(const IpAddress& own, const IpAddress& peer) const {
  return std::ranges::any_of(streams_, [&](const auto& entry) {
    const Stream& stream = *entry.second;
    return stream.state == State::open && stream.ends.own == own && stream.ends.peer == peer;
  });
}

StreamPort::StreamPtr StreamPort::add(UniqueFd socket) {
  const Key key = next_key_++;
  auto stream = std::make_shared<Stream>(std::move(socket), epoll_.get(), key);
  stream->deadline = Clock::now() + options_.patience;
  if (!stream->socket.watch()) return nullptr;
  streams_.emplace(key, stream);
  tidy_soon();
  return stream;
}

StreamPort::StreamPtr StreamPort::begin_dial(const Ends& ends, const StreamTarget& target) {
  const To there = to(ends, target);
  if (StreamPtr known = find(there)) return known;
  const auto refusal = refusals_.find(there);
  const bool too_soon = refusal != refusals_.end() && Clock::now() < refusal->second.until;
  if (too_soon || outgoing_ >= max_outgoing || !epoll_) return nullptr;
  UniqueFd connection = begin_connection(ends, options_.port);
  StreamPtr stream = connection ? add(std::move(connection)) : nullptr;
  if (!stream) {
    refused(there);
    return nullptr;
  }
  stream->state = State::dialling;
  stream->dialled = true;
  stream->ends = ends;
  stream->greeting = {.source = ends.own,
                      .destination = ends.peer,
                      .slot = options_.slot,
                      .target = target,
                      .nonce = new_nonce()};
  ++outgoing_;
  ways_.emplace(there, stream);
  return stream;
}

bool StreamPort::dial(const Ends& ends, const StreamTarget& target) {
  const std::lock_guard lock(mutex_);
  return begin_dial(ends, target) != nullptr;
}

bool StreamPort::send(const Ends& ends, const StreamTarget& target, std::span<const StreamedRun> runs) {
  StreamPtr stream;
  {
    const std::lock_guard lock(mutex_);
    stream = begin_dial(ends, target);
    if (!stream) return false;
    if (!stream->answered.exchange(true, std::memory_order_relaxed) && stream->place != 0)
      incoming_.move_on(stream->place);
  }
  (void)stream->socket.send(runs);
  return true;
}

void StreamPort::say(const Ends& ends, Slot peer, std::span<const std::byte> frame) {
  StreamPtr stream;
  {
    const std::lock_guard lock(mutex_);
    stream = find(to(ends, {.slot = peer}));
  }
  if (stream) (void)stream->socket.send_frame(frame);
}

void StreamPort::refused(const To& target) {
  const auto now = Clock::now();
  if (refusals_.size() >= max_refusals)
    std::erase_if(refusals_, [&](const auto& entry) { return entry.second.until <= now; });
  if (refusals_.size() >= max_refusals) refusals_.clear();
  Refusal& refusal = refusals_.try_emplace(target, Refusal{now, first_pause / 2}).first->second;
  refusal.pause = std::min(refusal.pause * 2, longest_pause);
  refusal.until = now + refusal.pause;
}

// ---- meeting

bool StreamPort::enter(const StreamPtr& incoming) {
  StreamPtr leaves;
  if (incoming_.size() >= max_incoming) {
    const auto* const place = incoming_.taken_by(incoming->seen);
    if (place == nullptr) return false;
    const auto found = streams_.find(place->second);
    if (found != streams_.end()) leaves = found->second;
    incoming_.leave(place->first);
  }
  incoming->place = incoming_.enter(incoming->seen, incoming->key);
  if (leaves) {
    leaves->place = 0;
    leaves->socket.shut_down();
  }
  return true;
}

void StreamPort::accept_all() {
  for (int i = 0; i < accepts_at_once; ++i) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE) && spare_) {
      // Without a descriptor the caller would stay and keep the listener readable: turn it away.
      spare_.reset();
      socket.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      socket.reset();
      spare_ = spare_descriptor();
      continue;
    }
    if (!socket) return;
    set_up(socket.get());
    const auto [seen, interface] = other_end_of(socket.get());
    const std::lock_guard lock(mutex_);
    const StreamPtr stream = add(std::move(socket));
    if (!stream) continue;
    stream->seen = seen;
    stream->ends.interface = interface;
    if (!enter(stream)) forget(stream);
  }
}

// Whether the packets' addresses are the connection's, or its other end may claim others.
bool StreamPort::believes(const Stream& stream, const StreamGreeting& greeting) const {
  const IpAddress own = own_end_of(stream.socket.descriptor());
  if (greeting.destination != own) {
    options_.explain("a stream of packets for " + text_of(greeting.destination) + " came to " + text_of(own) +
                     ", so something on its way changes the destination (a Kubernetes service, a mapped "
                     "port): let programs connect to this host's own address");
    return false;
  }
  if (greeting.source == stream.seen || options_.key != nullptr) return true;
  options_.explain("a stream of packets of " + text_of(greeting.source) + " came from " +
                   text_of(stream.seen) +
                   ", through NAT: that is believed only of hosts that share a key with this one "
                   "(WEIR_WIRE_KEY at both ends)");
  return false;
}

bool StreamPort::take_greeting(const StreamPtr& stream, const StreamGreeting& greeting,
                               std::span<const std::byte> body) {
  if (!believes(*stream, greeting)) return false;
  Slot slot = greeting.target.slot;
  if (slot == 0 && options_.owner) slot = options_.owner(greeting.target.service);
  if (slot == 0 || slot == options_.slot) return challenge(stream, greeting);
  if (!options_.hand_over) return false;
  UniqueFd connection = stream->socket.release();
  options_.hand_over(slot, std::move(connection), body);
  return false;
}

bool StreamPort::challenge(const StreamPtr& stream, const StreamGreeting& greeting) {
  stream->greeting = greeting;
  stream->challenge = new_nonce();
  stream->ends.own = greeting.destination;
  stream->ends.peer = greeting.source;
  stream->state = State::challenged;
  if (options_.challenged) options_.challenged(stream->ends);
  const StreamChallenge challenge{
      .slot = options_.slot,
      .nonce = stream->challenge,
      .proof = proof_of(options_.key, StreamEnd::answers, greeting, options_.slot, stream->challenge)};
  return stream->socket.send_greeting(encode_frame(challenge));
}

void StreamPort::adopt(UniqueFd connection, std::span<const std::byte> body) {
  const auto greeting = parse_greeting_body(body);
  if (!greeting || !connection) return;
  ::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
  const auto [seen, interface] = other_end_of(connection.get());
  StreamPtr stream;
  {
    const std::lock_guard lock(mutex_);
    if (!epoll_) return;
    stream = add(std::move(connection));
    if (!stream) return;
    stream->seen = seen;
    stream->ends.interface = interface;
    if (!enter(stream)) return forget(stream);
  }
  if (!believes(*stream, *greeting) || !challenge(stream, *greeting)) end(stream);
}

bool StreamPort::take_challenge(const StreamPtr& stream, const StreamChallenge& challenge) {
  const StreamGreeting& greeting = stream->greeting;
  if (greeting.target.slot != 0 && challenge.slot != greeting.target.slot) return false;
  if (challenge.proof !=
      proof_of(options_.key, StreamEnd::answers, greeting, challenge.slot, challenge.nonce)) {
    options_.explain(text_of(stream->ends.peer) + " does not prove that it has our key (WEIR_WIRE_KEY)");
    return false;
  }
  const auto proof = proof_of(options_.key, StreamEnd::dials, greeting, challenge.slot, challenge.nonce);
  if (!stream->socket.send_greeting(encode_proof(proof))) return false;
  open_up(stream, challenge.slot);
  return true;
}

void StreamPort::open_up(const StreamPtr& stream, Slot peer_slot) {
  {
    const std::lock_guard lock(mutex_);
    stream->state = State::open;
    stream->peer_slot = peer_slot;
    const To there = to(stream->ends, {.slot = peer_slot});
    // Without a key another user of the peer's host can claim its process's slot: what goes there stays with
    // the stream that was first, as long as that lives.
    if (!ways_.try_emplace(there, stream).second && !stream->dialled && options_.key != nullptr)
      ways_[there] = stream;
    if (stream->dialled) refusals_.erase(to(stream->ends, stream->greeting.target));
  }
  stream->socket.begin_runs();
  if (options_.opened) options_.opened(stream->ends, peer_slot, stream->dialled);
}

bool StreamPort::meet(const StreamPtr& stream, const Frame& frame) {
  switch (stream->state.load()) {
    case State::accepted: {
      const auto greeting =
          frame.kind == FrameKind::greeting ? parse_greeting_body(frame.body) : std::nullopt;
      return greeting && take_greeting(stream, *greeting, frame.body);
    }
    case State::challenged: {
      const auto proof = frame.kind == FrameKind::proof ? parse_proof_body(frame.body) : std::nullopt;
      const bool right = proof && *proof == proof_of(options_.key, StreamEnd::dials, stream->greeting,
                                                     options_.slot, stream->challenge);
      if (right) open_up(stream, stream->greeting.slot);
      return right;
    }
    case State::greeted: {
      const auto challenge =
          frame.kind == FrameKind::challenge ? parse_challenge_body(frame.body) : std::nullopt;
      return challenge && take_challenge(stream, *challenge);
    }
    case State::open:
      return talk(*stream, frame);
    default:
      return false;
  }
}

bool StreamPort::talk(const Stream& stream, const Frame& frame) {
  if (frame.kind == FrameKind::question) {
    if (options_.asked) options_.asked(stream.ends, stream.peer_slot);
    return true;
  }
  const auto hears = frame.kind == FrameKind::answer ? parse_answer_body(frame.body) : std::nullopt;
  if (hears && options_.answered) options_.answered(stream.ends, *hears);
  return hears.has_value();
}

void StreamPort::connected(const StreamPtr& stream) {
  int error = 0;
  socklen_t bytes = sizeof error;
  const bool is = ::getsockopt(stream->socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0;
  if (!is || error != 0 || !stream->socket.send_greeting(encode_frame(stream->greeting))) return end(stream);
  stream->state = State::greeted;
  stream->socket.flush();
}

// ---- receiving

// False: the stream is broken, or no longer ours.
bool StreamPort::take(const StreamPtr& stream, std::span<const std::byte>& arrived) {
  for (;;) {
    Frame frame;
    const Parsed parsed = parse_frame(arrived, frame);
    const bool is_early = frame.kind == FrameKind::run && stream->state != State::open;
    if (parsed == Parsed::broken || (is_early && arrived.size() >= frame_header_bytes)) return false;
    if (parsed == Parsed::partial) return true;
    arrived = arrived.subspan(frame.bytes);
    if (frame.kind == FrameKind::run)
      arrivals_.push_back({frame.run, stream->ends});
    else if (!meet(stream, frame))
      return false;
  }
}

void StreamPort::read(const StreamPtr& stream, const Handler& handler) {
  for (int i = 0; i < reads_at_once; ++i) {
    const std::size_t begun = stream->begun.size();
    std::ranges::copy(stream->begun, buffer_.begin());
    const ssize_t got = stream->socket.receive(std::span(buffer_).subspan(begun));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end(stream);
    std::span<const std::byte> arrived(buffer_.data(), begun + static_cast<std::size_t>(got));
    const bool is_full = arrived.size() == buffer_.size();
    arrivals_.clear();
    const bool goes_on = take(stream, arrived);
    if (!arrivals_.empty()) handler(arrivals_);
    if (!goes_on) return end(stream);
    stream->begun.assign(arrived.begin(), arrived.end());
    if (!is_full) return;
  }
}

void StreamPort::receive(const Handler& handler) {
  const std::unique_lock alone(receiving_, std::try_to_lock);
  if (!alone || !epoll_) return;
  std::array<epoll_event, 32> events;
  const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(ready, 0)))) {
    const std::uint64_t key = event.data.u64;  // epoll_event is packed, so no reference may be bound to it
    if (key == listener_key) {
      accept_all();
      continue;
    }
    StreamPtr stream;
    {
      const std::lock_guard lock(mutex_);
      const auto found = streams_.find(key);
      if (found != streams_.end()) stream = found->second;
    }
    if (!stream) continue;
    if ((event.events & EPOLLOUT) != 0) {
      if (stream->state == State::dialling)
        connected(stream);
      else
        stream->socket.flush();
    }
    if ((event.events & ~EPOLLOUT) != 0) read(stream, handler);
  }
}

// ---- ends

// With mutex_ held.
void StreamPort::forget(const StreamPtr& stream) {
  if (streams_.erase(stream->key) == 0) return;
  std::erase_if(ways_, [&](const auto& entry) { return entry.second == stream; });
  if (stream->place != 0) incoming_.leave(stream->place);
  if (!stream->dialled) return;
  --outgoing_;
  if (stream->state != State::open) refused(to(stream->ends, stream->greeting.target));
}

void StreamPort::end(const StreamPtr& stream) {
  bool was_last = false;
  {
    const std::lock_guard lock(mutex_);
    const bool is_known = (stream->state == State::open || stream->state == State::challenged) &&
                          streams_.contains(stream->key);
    forget(stream);
    was_last = is_known && !any_to(stream->ends.own, stream->ends.peer);
  }
  stream->socket.shut_down();  // another thread may hold it for a moment
  if (was_last && options_.ended) options_.ended(stream->ends.own, stream->ends.peer);
}

void StreamPort::tidy_soon() {
  if (!std::exchange(tidies_, true) && options_.tidy_later) options_.tidy_later(options_.patience);
}

void StreamPort::tidy() {
  const auto now = Clock::now();
  std::vector<StreamPtr> late;
  {
    const std::lock_guard lock(mutex_);
    tidies_ = false;
    bool others_wait = false;
    for (const auto& [key, stream] : streams_) {
      if (stream->state == State::open) continue;
      if (now >= stream->deadline)
        late.push_back(stream);
      else
        others_wait = true;
    }
    if (others_wait) tidy_soon();
  }
  for (const StreamPtr& stream : late) end(stream);
}

void StreamPort::finish(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  std::vector<StreamPtr> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, stream] : streams_)
      if (stream->state == State::open) open.push_back(stream);
  }
  for (const StreamPtr& stream : open) {
    while (stream->socket.has_queued() && Clock::now() < until) {
      (void)stream->socket.wait_to_send(std::chrono::milliseconds(10));
      stream->socket.flush();
    }
    stream->socket.end_sending();
  }
}

}  // namespace weir::link
