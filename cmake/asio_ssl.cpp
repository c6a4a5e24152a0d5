// Asio's own sources for TLS: see WeirAsio.cmake.
#include <asio/ssl/impl/src.hpp>
