#include "rpc/transport/listener.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "rpc/transport/socket_transport.hpp"
#include "rpc/transport/tls_transport.hpp"
#include "rpc/wire/frame.hpp"
#include "transport/handshake_places.hpp"
#include "transport/tcp_pacing.hpp"
#include "transport/unix_socket.hpp"
#include "transport/waiting_client.hpp"

namespace weir::rpc {

namespace {

using asio::ip::tcp;
using transport::HandshakePlaces;

std::unexpected<Error> refused(const Address& address, const char* what, int os_error) {
  return fail(Errc::bad_address,
              "cannot listen at " + address.text() + ": " + what + ": " + std::strerror(os_error));
}

// Makes a transport of an accepted socket, in the thread that will own it.
class Taker {
 public:
  Taker(const Address& address, std::shared_ptr<const CurrentTls> tls, Listener::Accepted accepted)
      : address_(address), tls_(std::move(tls)), accepted_(std::move(accepted)) {}

  bool full() const { return tls_ && places_->full(); }
  bool has_room() const { return !tls_ || places_->has_room(); }
  // For want of a descriptor, a handshake leaves.
  transport::Newcomers::Room make_room() const {
    return places_->handshakes()->make_room(transport::Newcomers::Lack::descriptor);
  }
  // Takes a place for a client that is about to be accepted.
  HandshakePlaces::Place place() const { return tls_ ? places_->take() : HandshakePlaces::Place(); }

  void take(const std::shared_ptr<const Taker>& self, asio::io_context& io, OwnedFd fd,
            const sockaddr_storage& from, HandshakePlaces::Place place) const {
    if (address_.scheme == Scheme::unix_socket)
      return accepted_(io,
                       make_socket_transport(io, std::move(fd), std::string("unix ").append(address_.path)));
    tcp::endpoint peer;
    std::memcpy(peer.data(), &from, peer.capacity());
    std::string name(tls_ ? "tls " : "tcp ");
    name.append(peer.address().to_string()).append(":").append(std::to_string(peer.port()));
    if (!tls_) return accepted_(io, make_socket_transport(io, std::move(fd), std::move(name)));
    std::error_code error;
    tcp::socket socket(io);
    socket.assign(peer.protocol(), fd.get(), error);
    if (error) return;
    fd.release();  // Asio owns it now
    socket.set_option(tcp::no_delay(true), error);
    TlsPeer tls{.side = TlsSide::server,
                .context = tls_->get(),
                .place = std::make_shared<HandshakePlaces::Place>(std::move(place)),
                .from = peer.address().to_string()};
    asio::co_spawn(io, shake_hands(self, io, std::move(socket), std::move(tls), std::move(name)),
                   asio::detached);
  }

 private:
  static asio::awaitable<void> shake_hands(std::shared_ptr<const Taker> self, asio::io_context& io,
                                           tcp::socket socket, TlsPeer tls, std::string name) {
    auto made = co_await make_tls_transport(std::move(socket), std::move(tls), std::move(name));
    if (made) self->accepted_(io, std::move(*made));
  }

  const Address address_;
  const std::shared_ptr<const CurrentTls> tls_;
  const Listener::Accepted accepted_;
  const std::shared_ptr<HandshakePlaces> places_ = std::make_shared<HandshakePlaces>();
};

// The frame for a client that is accepted only to be told that there is no descriptor for it.
std::array<std::byte, frame_header_bytes + 64> out_of_descriptors() {
  constexpr std::string_view why = "the server has no descriptors left for more connections: later";
  static_assert(why.size() <= 64);
  std::array<std::byte, frame_header_bytes + 64> frame;
  frame.fill(std::byte{' '});
  FrameHeader header;
  header.kind = FrameKind::reply;
  header.status = static_cast<std::uint16_t>(Errc::overloaded);
  header.body_bytes = 64;
  encode(header, frame.data());
  std::memcpy(frame.data() + frame_header_bytes, why.data(), why.size());
  return frame;
}

// A listening socket.
struct Bound {
  OwnedFd fd;
  std::optional<transport::UnixSocketFile> file;  // of a unix socket
};

// TCP, with or without TLS, and unix sockets.
class SocketListener final : public Listener, public Poller::Watcher {
 public:
  SocketListener(asio::io_context& io, Bound bound, Address address, std::shared_ptr<const CurrentTls> tls,
                 Threads threads, Accepted accepted, std::shared_ptr<transport::Newcomers> newcomers)
      : poller_(Poller::of(io)),
        fd_(std::move(bound.fd)),
        file_(std::move(bound.file)),
        address_(std::move(address)),
        threads_(std::move(threads)),
        pacing_(fd_.get()),
        secure_(tls != nullptr),
        taker_(std::make_shared<const Taker>(address_, std::move(tls), std::move(accepted))),
        newcomers_(std::move(newcomers)),
        reserve_(open_reserve()),
        pause_(io) {}
  ~SocketListener() override { close(); }
  bool start() { return poller_.add(fd_.get(), *this, EPOLLIN); }
  Address address() const override { return address_; }
  void accept_rest() override {
    accept(SOMAXCONN, Handshakes::all);
    close();
  }

 private:
  enum class Handshakes : std::uint8_t { as_there_is_room, all };

  void ready(std::uint32_t) override { accept(64, Handshakes::as_there_is_room); }

  void close() {
    if (!fd_) return;
    poller_.remove(fd_.get(), *this);
    file_.reset();
    pause_.cancel();
    fd_.close();
  }

  void accept(int most_at_once, Handshakes which) {
    for (int i = 0; i < most_at_once; ++i) {
      if (which != Handshakes::all && taker_->full()) {
        if (i > 0) return;  // the rest comes after the handshakes have read what has arrived
        if (!taker_->has_room()) return pause(HandshakePlaces::look_again);
      }
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      OwnedFd fd(accept4(fd_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) {
        const bool no_descriptor = errno == EMFILE || errno == ENFILE;
        if (no_descriptor && !transport::client_waits(fd_.get())) return;
        if (no_descriptor) {
          auto room = taker_->make_room();
          if (room == transport::Newcomers::Room::none)
            room = newcomers_->make_room(transport::Newcomers::Lack::descriptor);
          if (room == transport::Newcomers::Room::now) continue;
          if (room == transport::Newcomers::Room::soon) return pause(std::chrono::milliseconds(1));
          if (turn_one_away()) continue;
        }
        if (no_descriptor || errno == ENOBUFS || errno == ENOMEM) pause(std::chrono::milliseconds(100));
        return;
      }
      pacing_.accepted(fd.get());
      take(std::move(fd), from);
    }
  }

  static OwnedFd open_reserve() { return OwnedFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  // The reserve descriptor makes room for one client at a time. It is told that there is no
  // descriptor and is closed. In the kernel's queue it would wait for an answer. What it has already
  // sent is read first, or the kernel would reset the connection and the answer would be lost.
  // False: there was no reserve.
  bool turn_one_away() {
    if (!reserve_) return false;
    reserve_.close();
    OwnedFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd && !secure_) {  // over TLS there is no handshake yet that could carry it
      std::array<std::byte, 4096> unread;
      for (int reads = 0; reads < 16; ++reads)
        if (recv(fd.get(), unread.data(), unread.size(), MSG_DONTWAIT) < std::ssize(unread)) break;
      const auto words = out_of_descriptors();
      send(fd.get(), words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      shutdown(fd.get(), SHUT_WR);
    }
    const bool turned_away = static_cast<bool>(fd);
    fd.close();
    reserve_ = open_reserve();
    return turned_away;
  }

  // Out of descriptors or handshake places: looking again at once would find the same. A
  // connection that ends makes room.
  void pause(std::chrono::milliseconds time) {
    pause_.expires_after(time);
    pause_.async_wait([this, weak = weak_from_this()](const std::error_code& error) {
      const auto here = weak.lock();  // it may have gone in the turn that ended the pause
      if (!error && here && fd_) poller_.change(fd_.get(), *this, EPOLLIN);
    });
    poller_.change(fd_.get(), *this, 0);  // last: waiting may run out of memory
  }

  void take(OwnedFd fd, const sockaddr_storage& from) {
    turn_ = (turn_ + 1) % threads_.size();
    asio::io_context& to = *threads_[turn_];
    HandshakePlaces::Place place = taker_->place();
    if (&to == &poller_.io()) return taker_->take(taker_, to, std::move(fd), from, std::move(place));
    asio::post(to, [taker = taker_, &to, fd = std::move(fd), from, place = std::move(place)]() mutable {
      taker->take(taker, to, std::move(fd), from, std::move(place));
    });
  }

  Poller& poller_;
  OwnedFd fd_;
  std::optional<transport::UnixSocketFile> file_;
  const Address address_;
  const Threads threads_;
  const transport::AcceptedPacing pacing_;
  std::size_t turn_ = 0;
  const bool secure_;
  const std::shared_ptr<const Taker> taker_;  // accepted sockets hold it until handed on
  const std::shared_ptr<transport::Newcomers> newcomers_;
  OwnedFd reserve_;  // used to tell a client that no descriptor is left
  asio::steady_timer pause_;
};

// The poller shares the listener; its owner holds this handle alone.
class Handle final : public Listener {
 public:
  explicit Handle(std::shared_ptr<SocketListener> listener) : listener_(std::move(listener)) {}
  Address address() const override { return listener_->address(); }
  void accept_rest() override { listener_->accept_rest(); }

 private:
  std::shared_ptr<SocketListener> listener_;
};

// A client whose host goes down or off the network sends nothing more; without keepalive probes a server
// would wait for its next call for ever. Connections inherit them from the socket that accepts.
void notice_lost_hosts(int listener) {
  constexpr int on = 1, idle_s = 60, between_probes_s = 15, probes = 4;
  setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(listener, IPPROTO_TCP, TCP_KEEPINTVL, &between_probes_s, sizeof between_probes_s);
  setsockopt(listener, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

Result<Bound> bind_tcp(const Address& address, const tcp::endpoint& at) {
  OwnedFd fd(socket(at.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return refused(address, "socket", errno);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  notice_lost_hosts(fd.get());
  if (bind(fd.get(), at.data(), static_cast<socklen_t>(at.size())) != 0)
    return refused(address, "bind", errno);
  if (::listen(fd.get(), SOMAXCONN) != 0) return refused(address, "listen", errno);
  return Bound{std::move(fd), std::nullopt};
}

Result<Bound> bind_unix(const Address& address) {
  auto socket = transport::listen_unix(address.path, 0, SOMAXCONN);
  if (!socket) return refused(address, "bind", socket.error());
  return Bound{std::move(socket->fd), std::move(socket->file)};
}

}  // namespace

Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const Address& address,
                                         const TransportOptions& options,
                                         std::shared_ptr<const CurrentTls> tls,
                                         const Listener::Threads& threads, Listener::Accepted accepted,
                                         std::shared_ptr<transport::Newcomers> newcomers) {
  if (address.scheme == Scheme::rdma || address.scheme == Scheme::rdma_tls)
    return listen_rdma(io, address, options, std::move(tls), threads, std::move(accepted));
  if (!address.secure()) tls = nullptr;
  Address known = address;
  Result<Bound> bound;
  if (address.scheme == Scheme::unix_socket) {
    bound = bind_unix(address);
  } else {
    std::error_code bad;
    tcp::endpoint at(asio::ip::make_address(address.host, bad), address.port);
    if (bad)
      return fail(Errc::bad_address,
                  "cannot listen at " + address.text() + ": name an IP address of this host");
    bound = bind_tcp(address, at);
    if (!bound) return std::unexpected(std::move(bound.error()));
    auto size = static_cast<socklen_t>(at.capacity());
    getsockname(bound->fd.get(), at.data(), &size);
    known.port = at.port();
  }
  if (!bound) return std::unexpected(std::move(bound.error()));
  auto listener = std::make_shared<SocketListener>(io, std::move(*bound), std::move(known), std::move(tls),
                                                   threads, std::move(accepted), std::move(newcomers));
  if (!listener->start()) return refused(address, "epoll_ctl", errno);
  return std::make_unique<Handle>(std::move(listener));
}

}  // namespace weir::rpc
