#include "cli/weir/metrics_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

namespace weir::command {
namespace {

using asio::ip::tcp;
constexpr std::size_t longest_request = 8192;
constexpr timeval patience{5, 0};

std::string reply(std::string_view status, std::string_view type, const std::string& body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     status, type, body.size(), body);
}

std::string answer(std::string_view request, const std::function<std::string()>& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  if (!line.starts_with("GET ")) return reply("405 Method Not Allowed", "text/plain", "GET /metrics\n");
  const std::string_view path = line.substr(4, line.find_first_of(" ?", 4) - 4);
  if (path != "/metrics") return reply("404 Not Found", "text/plain", "GET /metrics\n");
  return reply("200 OK", "text/plain; version=0.0.4; charset=utf-8", page());
}

void serve_one(tcp::socket& socket, const std::function<std::string()>& page) {
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  std::string request;
  char block[1024];
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < longest_request) {
    const ssize_t got = ::recv(socket.native_handle(), block, sizeof block, 0);
    if (got <= 0) return;
    request.append(block, static_cast<std::size_t>(got));
  }
  const std::string text = answer(request, page);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t took = ::send(socket.native_handle(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (took <= 0) return;
    sent += static_cast<std::size_t>(took);
  }
}

}  // namespace

std::string serve_metrics(const std::string& where, const std::function<std::string()>& page,
                          const std::function<void(const std::string&)>& listening) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos) return "an address to listen on is host:port, not " + where;
  std::string host = where.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  asio::io_context io;
  asio::error_code error;
  const auto found = tcp::resolver(io).resolve(host, where.substr(colon + 1), tcp::resolver::passive, error);
  if (error || found.empty()) return "cannot find " + where + ": " + error.message();
  tcp::acceptor acceptor(io);
  const tcp::endpoint at = *found.begin();
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return "cannot listen on " + where + ": " + error.message();
  const tcp::endpoint bound = acceptor.local_endpoint();
  const std::string address = bound.address().to_string();
  listening((bound.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(bound.port()));
  for (;;) {
    tcp::socket socket(io);
    acceptor.accept(socket, error);
    if (error && error != asio::error::connection_aborted)
      return "cannot accept connections on " + where + ": " + error.message();
    if (!error) serve_one(socket, page);
  }
}

}  // namespace weir::command
