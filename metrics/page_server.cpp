#include "metrics/page_server.hpp"

#include <strings.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <utility>

#include "transport/host_port.hpp"
#include "transport/newcomers.hpp"
#include "transport/own_host.hpp"
#include "transport/waiting_client.hpp"

namespace weir::metrics {

using asio::ip::tcp;
using transport::Newcomers;

struct PageServer::Serving {
  Serving(asio::io_context& io, Page made, const PageLimits& given)
      : acceptor(io),
        one_ended(io, asio::steady_timer::time_point::max()),
        page(std::move(made)),
        limits(given) {}

  tcp::acceptor acceptor;
  asio::steady_timer one_ended;
  Page page;  // empty: the server is gone
  const PageLimits limits;
  std::size_t open = 0;
  const std::shared_ptr<Newcomers> newcomers = std::make_shared<Newcomers>();  // have sent no request yet
  std::function<void(std::error_code)> ended;
};

namespace {

constexpr std::size_t longest_request = 8192;
constexpr std::string_view wrong_host =
    "Over loopback, Host must be an address, localhost or the name of this host\n";
constexpr std::chrono::milliseconds pause_without_descriptors{100};

std::string reply(std::string_view status, std::string_view type, std::string_view body) {
  std::string text("HTTP/1.1 ");
  text.append(status).append("\r\nContent-Type: ").append(type);
  text.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  return text.append("\r\nConnection: close\r\n\r\n").append(body);
}

// The value of the Host header; empty if the request has no such header. Browsers always send one.
std::string host_of(std::string_view request) {
  std::string_view rest = request;
  for (std::size_t end = rest.find("\r\n"); end != rest.npos; end = rest.find("\r\n")) {
    rest.remove_prefix(end + 2);
    if (rest.starts_with("\r\n")) break;
    constexpr std::string_view name = "host:";
    if (rest.size() < name.size() || strncasecmp(rest.data(), name.data(), name.size()) != 0) continue;
    std::string_view value = rest.substr(name.size(), rest.find("\r\n") - name.size());
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
    return std::string(value);
  }
  return {};
}

std::string answer(std::string_view request, const PageServer::Page& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  if (!line.starts_with("GET ")) return reply("405 Method Not Allowed", "text/plain", "GET /metrics\n");
  const std::string_view path = line.substr(4, line.find_first_of(" ?", 4) - 4);
  if (path != "/metrics") return reply("404 Not Found", "text/plain", "GET /metrics\n");
  return reply("200 OK", "text/plain; version=0.0.4; charset=utf-8", page());
}

bool lacks_resources(const std::error_code& error) {
  return error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system ||
         error == std::errc::not_enough_memory || error == std::errc::no_buffer_space;
}

template <class Serving>
asio::awaitable<void> converse(tcp::socket& socket, std::shared_ptr<Serving> serving, Newcomers::Stay stay) {
  std::string request;
  std::error_code error;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(request, longest_request), "\r\n\r\n",
                                  asio::redirect_error(asio::use_awaitable, error));
  // A request that is too long still has its first line, though perhaps no Host.
  const bool cut = error == asio::error::not_found;
  if ((error && !cut) || !serving->page) co_return;
  stay.settle();
  const tcp::endpoint here = socket.local_endpoint(error);
  const bool by_loopback = !error && here.address().is_loopback();
  const std::string text = by_loopback && (cut || !transport::names_this_host(host_of(request)))
                               ? reply("421 Misdirected Request", "text/plain", wrong_host)
                               : answer(request, serving->page);
  co_await asio::async_write(socket, asio::buffer(text), asio::redirect_error(asio::use_awaitable, error));
}

// Closed when it has to make room.
template <class Serving>
Newcomers::Stay stay_of(const std::shared_ptr<tcp::socket>& socket, Serving& serving) {
  std::error_code gone;
  const std::string from = socket->remote_endpoint(gone).address().to_string();
  return serving.newcomers->enter(from, [weak = std::weak_ptr(socket)](Newcomers::Lack) {
    std::error_code ignored;
    if (const auto leaves = weak.lock()) leaves->close(ignored);
    return Newcomers::Room::now;
  });
}

template <class Serving>
asio::awaitable<void> serve_one(std::shared_ptr<tcp::socket> socket, std::shared_ptr<Serving> serving) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer limit(socket->get_executor(), serving->limits.patience);
  Newcomers::Stay stay = stay_of(socket, *serving);
  co_await (converse(*socket, serving, std::move(stay)) || limit.async_wait(asio::use_awaitable));
}

template <class Serving>
asio::awaitable<void> accept_all(std::shared_ptr<Serving> serving) {
  std::error_code error;
  while (serving->page) {
    while (serving->open >= serving->limits.connections &&
           serving->newcomers->make_room(Newcomers::Lack::place) == Newcomers::Room::none)
      co_await serving->one_ended.async_wait(asio::redirect_error(asio::use_awaitable, error));
    tcp::socket socket =
        co_await serving->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::connection_aborted) continue;
    if (error == asio::error::no_descriptors && transport::client_waits(serving->acceptor.native_handle()) &&
        serving->newcomers->make_room(Newcomers::Lack::descriptor) == Newcomers::Room::now)
      continue;
    if (lacks_resources(error)) {
      asio::steady_timer pause(serving->acceptor.get_executor(), pause_without_descriptors);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (error) break;
    ++serving->open;
    auto accepted = std::make_shared<tcp::socket>(std::move(socket));
    asio::co_spawn(serving->acceptor.get_executor(), serve_one(std::move(accepted), serving),
                   [serving](const std::exception_ptr&) {
                     --serving->open;
                     serving->one_ended.cancel();
                   });
  }
  if (serving->page && serving->ended) serving->ended(error);
}

}  // namespace

std::expected<PageServer, std::string> PageServer::listen(asio::io_context& io, const std::string& host,
                                                          std::uint16_t port, Page page,
                                                          const PageLimits& limits) {
  const std::string named = transport::host_port_text(host, port);
  std::error_code error;
  const auto found = tcp::resolver(io).resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) return std::unexpected("cannot find " + named + ": " + error.message());
  auto serving = std::make_shared<Serving>(io, std::move(page), limits);
  tcp::acceptor& acceptor = serving->acceptor;
  const tcp::endpoint at = *found.begin();
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return std::unexpected("cannot listen on " + named + ": " + error.message());
  asio::co_spawn(io, accept_all(serving), [](const std::exception_ptr&) {});
  return PageServer(std::move(serving));
}

PageServer::~PageServer() {
  if (serving_ == nullptr) return;
  serving_->page = nullptr;
  serving_->ended = nullptr;
  std::error_code ignored;
  serving_->acceptor.close(ignored);
  serving_->one_ended.cancel();
}

std::string PageServer::where() const {
  std::error_code gone;
  const tcp::endpoint at = serving_->acceptor.local_endpoint(gone);
  return transport::host_port_text(at.address().to_string(), at.port());
}

std::uint16_t PageServer::port() const {
  std::error_code gone;
  return serving_->acceptor.local_endpoint(gone).port();
}

void PageServer::on_end(std::function<void(std::error_code)> ended) { serving_->ended = std::move(ended); }

}  // namespace weir::metrics
