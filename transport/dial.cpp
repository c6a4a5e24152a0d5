#include "transport/dial.hpp"

#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include "transport/tcp_pacing.hpp"

namespace weir::transport {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;

asio::awaitable<tcp::resolver::results_type> find_host(tcp::resolver& resolver, std::string host,
                                                       std::uint16_t port, std::error_code& error) {
  const auto number = asio::ip::make_address(host, error);
  if (!error) co_return tcp::resolver::results_type::create(tcp::endpoint(number, port), host, "");
  const std::string service = std::to_string(port);
  co_return co_await resolver.async_resolve(host, service, redirect_error(use_awaitable, error));
}

// asio::async_connect() will not do: it opens a socket of its own for each address, and what was set before
// is lost.
asio::awaitable<std::error_code> dial_tcp(tcp::resolver& resolver, tcp::socket& socket, std::string host,
                                          std::uint16_t port) {
  std::error_code error;
  const auto found = co_await find_host(resolver, std::move(host), port, error);
  if (error) co_return error;
  error = asio::error::host_not_found;
  for (const auto& entry : found) {
    const tcp::endpoint to = entry.endpoint();
    std::error_code ignored;
    socket.close(ignored);
    socket.open(to.protocol(), error);
    if (error) continue;
    socket.set_option(tcp::no_delay(true), ignored);
    spare_pacing(socket.native_handle(), to.data(), static_cast<socklen_t>(to.size()));
    co_await socket.async_connect(to, redirect_error(use_awaitable, error));
    if (!error || error == asio::error::operation_aborted) break;
  }
  co_return error;
}

}  // namespace weir::transport
