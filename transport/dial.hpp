// Connecting to a host by name or address: look the name up, then try its addresses one after the other.
//
// A lookup runs in Asio's own thread, so nothing here blocks. There is no time limit of its own: the caller
// ends an attempt by cancelling the resolver and closing the socket, and the coroutine then returns the error
// that this made.
//
// Threading: the io_context's thread. The resolver and the socket must outlive the coroutine.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <system_error>

namespace weir::transport {

// The addresses of `host` in the order in which to try them. A numeric address is not looked up.
asio::awaitable<asio::ip::tcp::resolver::results_type> find_host(asio::ip::tcp::resolver& resolver,
                                                                 std::string host, std::uint16_t port,
                                                                 std::error_code& error);

// Connects `socket` to one of those addresses. It has TCP_NODELAY set, and it is not paced if its peer is on
// this host. Returns the error of the last address that was tried.
asio::awaitable<std::error_code> dial_tcp(asio::ip::tcp::resolver& resolver, asio::ip::tcp::socket& socket,
                                          std::string host, std::uint16_t port);

}  // namespace weir::transport
