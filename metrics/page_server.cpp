#include "metrics/page_server.hpp"

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

namespace weir::metrics {

using asio::ip::tcp;

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
  std::function<void(std::error_code)> ended;
};

namespace {

constexpr std::size_t longest_request = 8192;
constexpr std::chrono::milliseconds pause_without_descriptors{100};

std::string reply(std::string_view status, std::string_view type, std::string_view body) {
  std::string text("HTTP/1.1 ");
  text.append(status).append("\r\nContent-Type: ").append(type);
  text.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  return text.append("\r\nConnection: close\r\n\r\n").append(body);
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
asio::awaitable<void> converse(tcp::socket& socket, std::shared_ptr<Serving> serving) {
  std::string request;
  std::error_code error;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(request, longest_request), "\r\n\r\n",
                                  asio::redirect_error(asio::use_awaitable, error));
  // A request that is too long still has its first line.
  if ((error && error != asio::error::not_found) || !serving->page) co_return;
  const std::string text = answer(request, serving->page);
  co_await asio::async_write(socket, asio::buffer(text), asio::redirect_error(asio::use_awaitable, error));
}

template <class Serving>
asio::awaitable<void> serve_one(tcp::socket socket, std::shared_ptr<Serving> serving) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer limit(socket.get_executor(), serving->limits.patience);
  co_await (converse(socket, serving) || limit.async_wait(asio::use_awaitable));
}

template <class Serving>
asio::awaitable<void> accept_all(std::shared_ptr<Serving> serving) {
  std::error_code error;
  while (serving->page) {
    while (serving->open >= serving->limits.connections)
      co_await serving->one_ended.async_wait(asio::redirect_error(asio::use_awaitable, error));
    tcp::socket socket =
        co_await serving->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::connection_aborted) continue;
    if (lacks_resources(error)) {
      asio::steady_timer pause(serving->acceptor.get_executor(), pause_without_descriptors);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (error) break;
    ++serving->open;
    asio::co_spawn(serving->acceptor.get_executor(), serve_one(std::move(socket), serving),
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
