// Makes a client's connection: resolve, connect, shake hands.
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <typeinfo>

#include "rdma/stream.hpp"
#include "rpc/address.hpp"
#include "rpc/client.hpp"
#include "rpc/link/peer_progress.hpp"
#include "rpc/transport/rdma_transport.hpp"
#include "rpc/transport/socket_transport.hpp"
#include "rpc/transport/time_limit.hpp"
#include "rpc/transport/tls_transport.hpp"
#include "transport/dial.hpp"
#include "transport/unix_socket.hpp"

namespace weir::rpc {

namespace {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;

std::unexpected<Error> unreachable(const Address& address, const std::string& why) {
  return fail(Errc::unreachable,
              "cannot connect to " + address.text() + ": " + why + "; is the server running there?");
}

// If the listener's queue is full, waits for room, as TCP's connect(2) does: unix(7) returns EAGAIN instead.
asio::awaitable<Result<TransportPtr>> connect_unix(asio::io_context& io, Address address,
                                                   std::chrono::milliseconds timeout) {
  const Deadline latest = deadline_from(Deadline::clock::now(), timeout);
  asio::steady_timer pause(io);
  for (;;) {
    auto fd = transport::connect_unix(address.path);
    if (fd) co_return make_socket_transport(io, std::move(*fd), "unix " + address.path);
    if (fd.error() != EAGAIN || Deadline::clock::now() >= latest)
      co_return unreachable(address, std::strerror(fd.error()));
    pause.expires_after(std::chrono::milliseconds(1));
    std::error_code cancelled;
    co_await pause.async_wait(redirect_error(use_awaitable, cancelled));
    if (cancelled) co_return unreachable(address, cancelled.message());
  }
}

asio::awaitable<Result<tcp::socket>> connect_tcp(asio::io_context& io, Address address,
                                                 std::chrono::milliseconds timeout) {
  tcp::socket socket(io);
  tcp::resolver resolver(io);
  const TimeLimit limit(io.get_executor(), timeout, [&] {
    resolver.cancel();
    std::error_code ignored;
    socket.close(ignored);
  });
  const std::error_code error = co_await transport::dial_tcp(resolver, socket, address.host, address.port);
  if (limit.passed())
    co_return unreachable(address, "no answer within " + std::to_string(timeout.count()) + " ms");
  if (error) co_return unreachable(address, error.message());
  co_return socket;
}

asio::awaitable<Result<rdma::Stream>> connect_rdma_stream(rdma::Engine& engine, rdma::Endpoint at,
                                                          Address address, ConnectOptions options) {
  rdma::Stream stream(engine);
  rdma::StreamSettings settings;
  settings.resolve_timeout = options.connect_timeout;
  std::error_code error;
  co_await rdma::async_connect(stream, at, settings, redirect_error(use_awaitable, error));
  if (error)
    co_return unreachable(address, stream.error().what.empty() ? error.message() : stream.error().what);
  co_return std::move(stream);
}

asio::awaitable<Result<TransportPtr>> connect_rdma_to(rdma::Engine& engine, rdma::Endpoint at,
                                                      Address address, ConnectOptions options, TlsPeer tls) {
  if (!address.secure()) {
    auto connected = co_await connect_rdma_channel(engine, at, options.connect_timeout, options.transport);
    if (!connected && connected.error().code == Errc::bad_setting)
      co_return std::unexpected(std::move(connected.error()));
    if (!connected) co_return unreachable(address, connected.error().what);
    co_return std::move(*connected);
  }
  auto stream = co_await connect_rdma_stream(engine, at, address, options);
  if (!stream) co_return std::unexpected(std::move(stream.error()));
  const std::string peer = "rdma+tls " + address.host + ":" + std::to_string(address.port);
  co_return co_await make_tls_transport(std::move(*stream), std::move(tls), peer);
}

// Tries the host's addresses one after the other, within one time limit for all.
asio::awaitable<Result<TransportPtr>> connect_rdma(asio::io_context& io, Address address,
                                                   ConnectOptions options, TlsPeer tls) {
  const auto engine = engine_of(io, options.transport);
  if (!engine) co_return std::unexpected(engine.error());
  const Deadline end = deadline_from(Deadline::clock::now(), options.connect_timeout);
  tcp::resolver resolver(io);
  std::error_code error;
  const TimeLimit limit(io.get_executor(), options.connect_timeout, [&] { resolver.cancel(); });
  const auto found = co_await transport::find_host(resolver, address.host, address.port, error);
  const std::string late = "no answer within " + std::to_string(options.connect_timeout.count()) + " ms";
  Result<TransportPtr> connected = unreachable(address, error && !limit.passed() ? error.message() : late);
  for (const auto& entry : found) {
    options.connect_timeout = std::chrono::ceil<std::chrono::milliseconds>(end - Deadline::clock::now());
    if (options.connect_timeout.count() <= 0) break;
    connected = co_await connect_rdma_to(**engine, entry.endpoint(), address, options, tls);
    const auto cancelled = (co_await asio::this_coro::cancellation_state).cancelled();
    if (connected || cancelled != asio::cancellation_type::none) break;
  }
  co_return connected;
}

asio::awaitable<Result<TransportPtr>> dial(asio::io_context& io, Address address, ConnectOptions options) {
  TlsPeer tls;
  tls.timeout = options.connect_timeout;
  if (address.secure()) {
    auto context = make_tls_context(options.transport.tls, TlsSide::client);
    if (!context) co_return std::unexpected(std::move(context.error()));
    tls.context = std::move(*context);
    const TlsOptions& wanted = options.transport.tls;
    if (wanted.check_certificate && wanted.check_server_name)
      tls.server_name = wanted.server_name.empty() ? address.host : wanted.server_name;
  }
  const std::string where = address.host + ":" + std::to_string(address.port);
  switch (address.scheme) {
    case Scheme::unix_socket:
      co_return co_await connect_unix(io, address, options.connect_timeout);
    case Scheme::tcp:
    case Scheme::tls: {
      auto socket = co_await connect_tcp(io, address, options.connect_timeout);
      if (!socket) co_return std::unexpected(std::move(socket.error()));
      if (address.secure())
        co_return co_await make_tls_transport(std::move(*socket), std::move(tls), "tls " + where);
      OwnedFd fd(socket->release());
      co_return make_socket_transport(io, std::move(fd), "tcp " + where);
    }
    case Scheme::rdma:
    case Scheme::rdma_tls:
      co_return co_await connect_rdma(io, address, options, tls);
  }
  co_return fail(Errc::bad_address, "an address of no transport");
}

// Waits for the server's hello. If the server refuses this client instead, calls report that.
asio::awaitable<Result<void>> greeted(std::shared_ptr<ClientCore> core, std::string address,
                                      std::chrono::milliseconds timeout) {
  asio::steady_timer patience(core->io(), deadline_from(Deadline::clock::now(), timeout));
  struct Waiting {
    explicit Waiting(ClientCore& on, asio::steady_timer& timer) : core(on) {
      core.when_greeted([&timer] { timer.cancel(); });
    }
    ~Waiting() { core.when_greeted(nullptr); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ClientCore& core;
  };
  if (core->is_open() && !core->peer_hello()) {
    const Waiting waiting(*core, patience);
    std::error_code cancelled;
    co_await patience.async_wait(redirect_error(use_awaitable, cancelled));
  }
  if (!core->is_open() || core->peer_hello()) co_return Result<void>();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(timeout.count()) / 1000);
  co_return fail(Errc::unreachable, "whoever takes connections at " + address + " said nothing for " +
                                        seconds + " s: it is no server of Weir's rpc, or one that hangs");
}

}  // namespace

asio::awaitable<Result<Client>> connect(std::string address) {
  ConnectOptions options;
  return connect(std::move(address), std::move(options));
}

asio::awaitable<Result<Client>> connect(std::string address, ConnectOptions options) {
  const auto executor = co_await asio::this_coro::executor;
  // Asio 1.22's target() does not compare types; the caller must.
  using Plain = asio::io_context::executor_type;
  const bool is_plain = executor.target_type() == typeid(Plain);
  const auto* plain = is_plain ? executor.target<Plain>() : nullptr;
  if (plain == nullptr)
    co_return fail(
        Errc::bad_setting,
        "connect() must run in a coroutine that was spawned on an io_context itself, not on a strand "
        "or a thread_pool");
  asio::io_context& io = plain->context();
  auto parsed = parse_address(address);
  if (!parsed) co_return std::unexpected(std::move(parsed.error()));
  auto transport = co_await dial(io, *parsed, options);
  std::string why_fallback;
  if (!transport && parsed->fallback) {
    why_fallback = transport.error().what;
    parsed->scheme = *std::exchange(parsed->fallback, std::nullopt);
    transport = co_await dial(io, *parsed, options);
    if (!transport) transport.error().what += " (and before, over RDMA: " + why_fallback + ")";
  }
  if (!transport) co_return std::unexpected(std::move(transport.error()));
  auto core = std::make_shared<ClientCore>(io, std::move(*transport), options.limits);
  core->intercept(std::move(options.interceptors));
  core->use_compression(options.compression);
  core->start();
  core->say_hello();
  if (options.token)
    if (Result<void> shown = core->present(options.token); !shown) co_return std::unexpected(shown.error());
  if (Result<void> met = co_await greeted(core, address, options.hello_timeout); !met)
    co_return std::unexpected(std::move(met.error()));
  core->keep_alive();
  co_return Client(std::move(core), name_of(parsed->scheme), std::move(why_fallback));
}

asio::awaitable<Result<void>> Client::ping(std::chrono::microseconds timeout) { return ping(core_, timeout); }

asio::awaitable<Result<void>> Client::ping(std::shared_ptr<ClientCore> core,
                                           std::chrono::microseconds timeout) {
  CallOptions options;
  options.timeout = timeout;
  Result<std::uint64_t> id(0);  // without a core, StartedCall reports that
  if (core) {
    if (auto draft = core->begin(0)) {
      draft->kind = FrameKind::ping;
      id = core->commit(*draft, options);
    } else {
      id = std::unexpected(std::move(draft.error()));
    }
  }
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<void>)>(
      StartedCall<void, MessagePack>(std::move(core), std::move(id)), asio::use_awaitable);
}

asio::awaitable<Result<void>> Client::ping_while_alive(std::chrono::microseconds timeout) {
  return ping_while_alive(core_, timeout);
}

asio::awaitable<Result<void>> Client::ping_while_alive(std::shared_ptr<ClientCore> core,
                                                       std::chrono::microseconds timeout) {
  const auto signs = [&core] {
    return core ? PeerProgress{core->stats().bytes_received, core->stats().bytes_sent, core->waiting_bytes()}
                : PeerProgress();
  };
  for (;;) {
    const PeerProgress before = signs();
    Result<void> answered = co_await ping(core, timeout);
    if (answered || answered.error().code != Errc::deadline_exceeded || !may_still_answer(before, signs()))
      co_return answered;
  }
}

void Client::close() {
  if (is_open()) close({Errc::closed, "the client was closed"});
}

void Client::close(Error why) {
  if (core_) core_->end_because(std::move(why));
}

}  // namespace weir::rpc
