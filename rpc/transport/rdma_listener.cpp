#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "rdma/acceptor.hpp"
#include "rpc/transport/listener.hpp"
#include "rpc/transport/rdma_transport.hpp"
#include "rpc/transport/tls_transport.hpp"
#include "transport/handshake_places.hpp"

namespace weir::rpc {

namespace {

// A thread's acceptor. It accepts until it is closed or pending connections have arrived; `take` makes a
// transport of each. Only that thread uses it.
template <class Acceptor>
struct Door {
  using Connected = decltype(std::declval<Acceptor&>().async_accept(asio::use_awaitable));
  // After a handshake, asks whether the listener still listens.
  using Take = std::function<void(asio::io_context&, typename Connected::value_type, std::function<bool()>)>;

  static void open(const std::shared_ptr<Door>& self, Acceptor acceptor) {
    asio::io_context& io = acceptor.get_executor().context();
    self->acceptor.emplace(std::move(acceptor));
    asio::co_spawn(io, accept(self), asio::detached);
  }
  void finish() {
    if (acceptor) acceptor->finish();
  }
  void close() {
    closed = true;
    if (acceptor) acceptor->close();
  }

  static asio::awaitable<void> accept(std::shared_ptr<Door> self) {
    asio::io_context& io = self->acceptor->get_executor().context();
    asio::steady_timer room(io);
    while (!self->closed) {
      std::error_code error;
      if (self->places && !self->places->has_room()) {
        room.expires_after(transport::HandshakePlaces::look_again);
        co_await room.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      auto connected =
          co_await self->acceptor->async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) break;
      if (error) continue;  // that one was not established; the next may be
      self->take(io, std::move(connected), [weak = std::weak_ptr(self)] {
        const auto alive = weak.lock();
        return alive && !alive->closed;
      });
    }
    self->acceptor.reset();
  }

  Take take;
  std::shared_ptr<transport::HandshakePlaces> places;  // null: no TLS
  std::optional<Acceptor> acceptor;
  bool closed = false;
};

// One of its doors listens; the doors of the other threads have seats.
template <class Acceptor>
class RdmaListener final : public Listener {
 public:
  using Take = typename Door<Acceptor>::Take;

  RdmaListener(Acceptor acceptor, Address address, Take take,
               std::shared_ptr<transport::HandshakePlaces> places)
      : address_(std::move(address)), take_(std::move(take)), places_(std::move(places)), own_(make_door()) {
    address_.port = acceptor.local_endpoint().port();
    Door<Acceptor>::open(own_, std::move(acceptor));
  }
  ~RdmaListener() override {
    own_->close();
    for (auto& [io, door] : others_) asio::post(*io, [closed = std::move(door)] { closed->close(); });
  }
  template <class Settings>
  void add(rdma::Engine& engine, const Settings& settings) {
    const auto& [io, door] = others_.emplace_back(&engine.io(), make_door());
    asio::post(*io, [opened = door, settings, seat = own_->acceptor->seat_for(engine)]() mutable {
      auto acceptor = Acceptor::sit(std::move(seat), settings);
      if (acceptor) Door<Acceptor>::open(opened, std::move(*acceptor));  // the listener has these settings
    });
  }
  Address address() const override { return address_; }
  void accept_rest() override {
    own_->finish();
    for (auto& [io, door] : others_) asio::post(*io, [finished = door] { finished->finish(); });
  }

 private:
  std::shared_ptr<Door<Acceptor>> make_door() const {
    auto door = std::make_shared<Door<Acceptor>>();
    door->take = take_;
    door->places = places_;
    return door;
  }

  Address address_;
  const Take take_;
  const std::shared_ptr<transport::HandshakePlaces> places_;
  const std::shared_ptr<Door<Acceptor>> own_;
  std::vector<std::pair<asio::io_context*, std::shared_ptr<Door<Acceptor>>>> others_;
};

template <class Acceptor, class Settings>
Result<std::unique_ptr<Listener>> make_listener(
    rdma::Engine& engine, const Address& address, const Listener::Threads& threads, const Settings& settings,
    typename Door<Acceptor>::Take take, std::shared_ptr<transport::HandshakePlaces> places = nullptr) {
  const auto refused = [&](const std::string& why) {
    return fail(Errc::rdma, "cannot listen at " + address.text() + ": " + why);
  };
  std::error_code bad;
  const rdma::Endpoint at(asio::ip::make_address(address.host, bad), address.port);
  if (bad)
    return fail(Errc::bad_address,
                "cannot listen at " + address.text() + ": name an IP address of this host");
  auto acceptor = Acceptor::listen(engine, at, settings);
  if (!acceptor) return refused(acceptor.error().what);
  auto listener = std::make_unique<RdmaListener<Acceptor>>(std::move(*acceptor), address, std::move(take),
                                                           std::move(places));
  for (asio::io_context* io : threads) {
    if (io == &engine.io()) continue;
    const auto beside = engine_beside(engine, *io);
    if (!beside) return refused(beside.error().what);
    listener->add(**beside, settings);
  }
  return listener;
}

asio::awaitable<void> shake_hands(rdma::Stream stream, TlsPeer tls, std::string peer,
                                  std::function<bool()> listening,
                                  std::function<void(TransportPtr)> accepted) {
  auto made = co_await make_tls_transport(std::move(stream), std::move(tls), std::move(peer));
  if (made && listening()) accepted(std::move(*made));
}

}  // namespace

Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options,
                                              std::shared_ptr<const CurrentTls> tls,
                                              const Listener::Threads& threads, Listener::Accepted accepted) {
  const auto engine = engine_of(io, options);
  if (!engine) return std::unexpected(engine.error());
  if (!address.secure()) {
    const auto settings = rdma_acceptor_settings(options);
    if (!settings) return std::unexpected(settings.error());
    return make_listener<rdma::ChannelAcceptor>(
        **engine, address, threads, *settings,
        [accepted = std::move(accepted)](asio::io_context& there, rdma::Channel channel, const auto&) {
          accepted(there, make_rdma_transport(std::move(channel)));
        });
  }
  const auto places = std::make_shared<transport::HandshakePlaces>();
  return make_listener<rdma::Acceptor>(
      **engine, address, threads, rdma::AcceptorSettings(),
      [tls = std::move(tls), accepted = std::move(accepted), places](asio::io_context& there,
                                                                     rdma::Stream stream, auto listening) {
        const rdma::Endpoint remote = stream.remote_endpoint();
        std::string peer = "rdma+tls " + remote.address().to_string() + ":" + std::to_string(remote.port());
        TlsPeer peer_tls{.side = TlsSide::server,
                         .context = tls->get(),
                         .place = std::make_shared<transport::HandshakePlaces::Place>(places->take()),
                         .from = remote.address().to_string()};
        asio::co_spawn(
            there,
            shake_hands(std::move(stream), std::move(peer_tls), std::move(peer), std::move(listening),
                        [&there, accepted](TransportPtr made) { accepted(there, std::move(made)); }),
            asio::detached);
      },
      places);
}

}  // namespace weir::rpc
