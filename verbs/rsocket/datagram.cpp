#include "verbs/rsocket/datagram.hpp"

#include <rdma/rsocket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "verbs/rsocket/service.hpp"

namespace weir::rsocket {
namespace {

constexpr std::size_t most_destinations = 4096;
constexpr std::size_t most_through_udp = 256;  // waiting to be received
constexpr int most_at_once = 64;
constexpr std::size_t most_data = DatagramPort::message_bytes - max_udp_header_bytes;

const sockaddr* as_address(const sockaddr_storage& name) { return reinterpret_cast<const sockaddr*>(&name); }

// The address the host sends from towards `to`: connecting a UDP socket asks its routing table, and sends
// nothing.
Result<cm::Endpoint> source_towards(const cm::Endpoint& to, int family) {
  sockaddr_storage name{}, from{};
  cm::store(to, name);
  name = in_family(name, family);
  const link::UniqueFd probe(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof from;
  if (!probe || ::connect(probe.get(), as_address(name), size_of_family(family)) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0)
    return std::unexpected(errno);
  const auto source = cm::endpoint_of(as_address(from));
  if (!source) return std::unexpected(EAFNOSUPPORT);
  return *source;
}

Result<cm::Endpoint> local_endpoint(int udp) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(udp, reinterpret_cast<sockaddr*>(&name), &size) != 0) return std::unexpected(errno);
  const auto local = cm::endpoint_of(as_address(name));
  if (!local) return std::unexpected(EAFNOSUPPORT);
  return *local;
}

}  // namespace

Result<std::shared_ptr<Datagram>> Datagram::open(int family) {
  std::shared_ptr<Datagram> made(new Datagram(family));
  made->udp_.reset(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made->udp_) return std::unexpected(errno);
  const int error = Service::instance().watch(made->udp_.get(), [raw = made.get()] { raw->serve(); });
  if (error != 0) return std::unexpected(error);
  return made;
}

Datagram::~Datagram() {
  Service::instance().forget(udp_.get());
  for (auto& [key, destination] : destinations_) {
    if (destination.handle != nullptr) ibv_destroy_ah(destination.handle);
  }
}

int Datagram::bind(const sockaddr* address, socklen_t size) {
  return ::bind(udp_.get(), address, size) == 0 ? 0 : errno;
}

int Datagram::connect(const sockaddr* address, socklen_t size) {
  const std::scoped_lock hold(mutex_);
  if (::connect(udp_.get(), address, size) != 0) return errno;
  peer_ = cm::endpoint_of(address);  // none for AF_UNSPEC, which dissolves the association
  std::erase_if(arrived_, [&](const Arrived& message) {
    if (is_for_us(message.from)) return false;
    if (message.port != nullptr) message.port->release(message.slot);
    return true;
  });
  return 0;
}

bool Datagram::is_for_us(const cm::Endpoint& from) const {
  return !peer_ || (peer_->same_ip(from) && peer_->port == from.port);
}

int Datagram::shut_down(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  const std::scoped_lock hold(mutex_);
  if (!peer_) return ENOTCONN;
  if (how != SHUT_WR) reading_ = false;
  if (how != SHUT_RD) writing_ = false;
  watchers_.wake_all();
  return 0;
}

void Datagram::close() {
  {
    const std::scoped_lock hold(mutex_);
    closed_ = true;
    watchers_.wake_all();
  }
  Service::instance().forget(udp_.get());
}

Result<DatagramPort*> Datagram::port_towards(const cm::Endpoint& to) {
  auto local = local_endpoint(udp_.get());
  if (!local) return std::unexpected(local.error());
  if (local->is_any()) {
    const auto source = source_towards(to, family_);
    if (!source) return std::unexpected(source.error());
    local->ip = source->ip;
  }
  for (const auto& port : ports_) {
    if (port->address().same_ip(*local) && port->address().port == local->port) return port.get();
  }
  auto port = DatagramPort::make(*local, options_);
  if (!port) return std::unexpected(port.error());
  ports_.push_back(std::move(*port));
  watchers_.wake_all();  // who sleeps has to sleep on this too
  return ports_.back().get();
}

Result<Datagram::Destination*> Datagram::destination(const cm::Endpoint& to) {
  const Key key{to.ip, to.port};
  const auto found = destinations_.find(key);
  if (found != destinations_.end()) return &found->second;
  const auto local = local_endpoint(udp_.get());
  if (local && local->port == 0) {  // as sending from an unbound UDP socket binds it
    sockaddr_storage any{};
    cm::store(family_ == AF_INET6 ? cm::any_v6() : cm::any_v4(), any);
    if (::bind(udp_.get(), as_address(any), size_of_family(family_)) != 0) return std::unexpected(errno);
  }
  const auto port = port_towards(to);
  if (!port) return std::unexpected(port.error());
  if (destinations_.size() >= most_destinations) {  // any: it will be asked for its queue pair again
    const auto first = destinations_.begin();
    if (first->second.handle != nullptr) ibv_destroy_ah(first->second.handle);
    destinations_.erase(first);
  }
  Destination& made = destinations_[key];
  made.port = *port;
  return &made;
}

int Datagram::send_through_udp(const Destination& destination, const cm::Endpoint& to, DatagramOp op,
                               Pieces data, int flags) {
  std::vector<std::byte> bytes;
  bytes.reserve(max_udp_header_bytes + data.left());
  append(bytes, UdpHeader{op, destination.port->qpn(), to.ip});
  const std::size_t header = bytes.size();
  bytes.resize(header + data.left());
  data.copy_to(std::span(bytes).subspan(header));
  sockaddr_storage name{};
  cm::store(to, name);
  name = in_family(name, family_);
  const int sending = MSG_NOSIGNAL | (flags & MSG_DONTROUTE);
  if (::sendto(udp_.get(), bytes.data(), bytes.size(), sending, as_address(name), size_of_family(family_)) >=
      0)
    return 0;
  return errno;
}

void Datagram::serve() {
  std::array<std::byte, max_udp_header_bytes + DatagramPort::message_bytes> buffer;
  const std::scoped_lock hold(mutex_);
  for (int i = 0; i < most_at_once; ++i) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    const auto got =
        ::recvfrom(udp_.get(), buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&name), &size);
    if (got < 0) {
      if (errno != EAGAIN && errno != EINTR) {  // ECONNREFUSED: nobody has that port
        error_ = errno;
        watchers_.wake_all();
      }
      return;
    }
    const auto from = cm::endpoint_of(as_address(name));
    const auto message = parse_udp(std::span(buffer).first(static_cast<std::size_t>(got)));
    if (from && message) take(*from, *message);
  }
}

void Datagram::take(const cm::Endpoint& from, const Parsed<UdpHeader>& message) {
  const auto known = destination(from);
  if (!known) return;
  learn(**known, from, message.header.qpn);
  if (message.header.op != DatagramOp::data) return;
  (void)send_through_udp(**known, from, DatagramOp::control, Pieces({}), 0);
  if (!reading_ || !is_for_us(from) || arrived_.size() >= most_through_udp) return;
  Arrived arrived;
  arrived.from = from;
  arrived.own.assign(message.rest.begin(), message.rest.end());
  arrived_.push_back(std::move(arrived));
  watchers_.wake_all();
}

void Datagram::learn(Destination& destination, const cm::Endpoint& who, std::uint32_t qpn) {
  if (destination.handle != nullptr && destination.qpn == qpn) return;
  if (destination.handle == nullptr) destination.handle = destination.port->address_handle(who);
  destination.qpn = qpn;
}

void Datagram::progress() {
  bool moved = false;
  for (const auto& port : ports_) {
    const bool some = port->progress([&](std::uint32_t slot, std::span<const std::byte> bytes) {
      const auto message = parse_ud(bytes);
      if (!message || !is_for_us(message->header.source) || !reading_) return port->release(slot);
      Arrived arrived;
      arrived.from = message->header.source;
      arrived.port = port.get();
      arrived.slot = slot;
      arrived.bytes = message->rest;
      arrived_.push_back(std::move(arrived));
    });
    moved = moved || some;
  }
  if (moved) watchers_.wake_all();
}

Result<std::size_t> Datagram::send(Pieces from, int flags, const sockaddr* address, socklen_t size) {
  std::unique_lock hold(mutex_);
  if (!writing_) return std::unexpected(EPIPE);
  const bool named = address != nullptr && size > 0;
  if (named && size < size_of_family(address->sa_family)) return std::unexpected(EINVAL);
  const auto to = named ? cm::endpoint_of(address) : peer_;
  if (!to) return std::unexpected(named ? EAFNOSUPPORT : EDESTADDRREQ);
  if (error_ != 0) return std::unexpected(std::exchange(error_, 0));
  const std::size_t bytes = from.left();
  if (bytes > most_data) return std::unexpected(EMSGSIZE);
  const auto found = destination(*to);
  if (!found) return std::unexpected(found.error());
  DatagramPort* port = (*found)->port;
  progress();
  const auto can_send = [&] {
    progress();
    return port->can_send() || closed_;
  };
  if (!can_send()) {
    if (!locked_blocks(flags)) return std::unexpected(EAGAIN);
    if (const int error = locked_wait(hold, can_send); error != 0) return std::unexpected(error);
  }
  if (closed_) return std::unexpected(EBADF);
  const auto again = destination(*to);  // while we waited it may have been forgotten
  if (!again) return std::unexpected(again.error());
  const Destination target = **again;
  int error = 0;
  if (target.handle == nullptr) {
    error = send_through_udp(target, *to, DatagramOp::data, from, flags);
  } else {
    std::vector<std::byte> header;
    append(header, UdHeader{target.port->address()});
    error = target.port->send(target.handle, target.qpn, header, from);
  }
  return error == 0 ? Result<std::size_t>(bytes) : std::unexpected(error);
}

Result<std::size_t> Datagram::receive(Pieces into, int flags, sockaddr_storage* from) {
  std::unique_lock hold(mutex_);
  const auto done = [&] {
    progress();
    return closed_ || error_ != 0 || !reading_ || !arrived_.empty();
  };
  if (!done()) {
    if (!locked_blocks(flags)) return std::unexpected(EAGAIN);
    if (const int error = locked_wait(hold, done); error != 0) return std::unexpected(error);
  }
  if (closed_) return std::unexpected(EBADF);
  if (arrived_.empty()) {
    if (error_ != 0) return std::unexpected(std::exchange(error_, 0));
    return 0;
  }
  const Arrived& message = arrived_.front();
  const std::span<const std::byte> bytes = message.port != nullptr ? message.bytes : message.own;
  const std::size_t taken = std::min(bytes.size(), into.left());  // the rest is lost, as with UDP
  into.copy_from(bytes.first(taken));
  if (from != nullptr) {
    cm::store(message.from, *from);
    *from = in_family(*from, family_);
  }
  const std::size_t result = (flags & MSG_TRUNC) != 0 ? bytes.size() : taken;
  if ((flags & MSG_PEEK) == 0) {
    if (message.port != nullptr) message.port->release(message.slot);
    arrived_.pop_front();
  }
  return result;
}

short Datagram::locked_ready(short events) {
  progress();
  short ready = 0;
  if (!arrived_.empty() || !reading_) ready = static_cast<short>(ready | (events & (POLLIN | POLLRDNORM)));
  const bool can_send = ports_.empty() || ports_.front()->can_send();
  if (can_send) ready = static_cast<short>(ready | (events & (POLLOUT | POLLWRNORM)));
  if (error_ != 0) ready |= POLLERR;
  return ready;
}

void Datagram::locked_prepare_sleep(std::vector<pollfd>& others) {
  bool rang = false;
  for (const auto& port : ports_) {
    rang |= port->set_alarm();
    others.push_back({.fd = port->descriptor(), .events = POLLIN, .revents = 0});
  }
  if (rang) watchers_.wake_all();
}

void Datagram::locked_silence() {
  bool rang = false;
  for (const auto& port : ports_) rang |= port->silence();
  if (rang) watchers_.wake_all();
}

int Datagram::local_name(sockaddr_storage& name) {
  socklen_t size = sizeof name;
  return ::getsockname(udp_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0 ? 0 : errno;
}

int Datagram::peer_name(sockaddr_storage& name) {
  socklen_t size = sizeof name;
  return ::getpeername(udp_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0 ? 0 : errno;
}

int Datagram::set_option(int level, int name, const void* value, socklen_t size) {
  const std::scoped_lock hold(mutex_);
  const bool ours = level == SOL_RDMA || (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_SNDBUF));
  if (ours) {
    if (const int error = options_.set(level, name, value, size, !ports_.empty()); error != 0) return error;
  }
  if (level == SOL_RDMA) return 0;
  return ::setsockopt(udp_.get(), level, name, value, size) == 0 ? 0 : errno;
}

int Datagram::get_option(int level, int name, void* value, socklen_t* size) {
  const std::scoped_lock hold(mutex_);
  const bool ours = level == SOL_RDMA || (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_SNDBUF));
  if (ours) return options_.get(level, name, value, size);
  if (level == SOL_SOCKET && name == SO_ERROR && error_ != 0 && value != nullptr && size != nullptr &&
      *size >= sizeof(int)) {
    const int error = std::exchange(error_, 0);
    std::memcpy(value, &error, sizeof error);
    return 0;
  }
  return ::getsockopt(udp_.get(), level, name, value, size) == 0 ? 0 : errno;
}

}  // namespace weir::rsocket
