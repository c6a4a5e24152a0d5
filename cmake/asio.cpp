// Asio's own sources: see WeirAsio.cmake.
#include <asio/impl/src.hpp>
