#include "cli/weir/metrics_server.hpp"

#include <fmt/format.h>

#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

namespace weir::command {
namespace {

using asio::ip::tcp;
using Page = std::function<std::string()>;
constexpr std::size_t longest_request = 8192;

std::string reply(std::string_view status, std::string_view type, const std::string& body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     status, type, body.size(), body);
}

std::string answer(std::string_view request, const Page& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  if (!line.starts_with("GET ")) return reply("405 Method Not Allowed", "text/plain", "GET /metrics\n");
  const std::string_view path = line.substr(4, line.find_first_of(" ?", 4) - 4);
  if (path != "/metrics") return reply("404 Not Found", "text/plain", "GET /metrics\n");
  return reply("200 OK", "text/plain; version=0.0.4; charset=utf-8", page());
}

asio::awaitable<void> converse(tcp::socket& socket, const Page& page) {
  std::string request;
  std::error_code error;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(request, longest_request), "\r\n\r\n",
                                  asio::redirect_error(asio::use_awaitable, error));
  if (error && error != asio::error::not_found) co_return;  // a request that is too long has its line, too
  const std::string text = answer(request, page);
  co_await asio::async_write(socket, asio::buffer(text), asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<void> serve_one(tcp::socket socket, const Page& page, std::chrono::milliseconds patience) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer limit(socket.get_executor(), patience);
  co_await (converse(socket, page) || limit.async_wait(asio::use_awaitable));
}

// Until a connection cannot be accepted: why.
asio::awaitable<std::error_code> accept_all(tcp::acceptor& acceptor, const Page& page,
                                            const MetricsLimits& limits) {
  std::size_t open = 0;
  asio::steady_timer one_ended(acceptor.get_executor(), asio::steady_timer::time_point::max());
  for (;;) {
    std::error_code error;
    while (open >= limits.connections)
      co_await one_ended.async_wait(asio::redirect_error(asio::use_awaitable, error));
    tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::connection_aborted) continue;
    if (error) co_return error;
    ++open;
    asio::co_spawn(acceptor.get_executor(), serve_one(std::move(socket), page, limits.patience),
                   [&open, &one_ended](const std::exception_ptr&) {
                     --open;
                     one_ended.cancel();
                   });
  }
}

}  // namespace

std::string serve_metrics(const HostPort& where, const Page& page,
                          const std::function<void(const std::string&)>& listening,
                          const MetricsLimits& limits) {
  const std::string named = fmt::format("{}:{}", where.host, where.port);
  asio::io_context io(1);
  asio::error_code error;
  const auto found =
      tcp::resolver(io).resolve(where.host, std::to_string(where.port), tcp::resolver::passive, error);
  if (error || found.empty()) return "cannot find " + named + ": " + error.message();
  tcp::acceptor acceptor(io);
  const tcp::endpoint at = *found.begin();
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return "cannot listen on " + named + ": " + error.message();
  const tcp::endpoint bound = acceptor.local_endpoint();
  const std::string address = bound.address().to_string();
  listening((bound.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(bound.port()));
  asio::co_spawn(io, accept_all(acceptor, page, limits), [&](const std::exception_ptr&, std::error_code why) {
    error = why;
    io.stop();
  });
  io.run();
  return "cannot accept connections on " + named + ": " + error.message();
}

}  // namespace weir::command
