// Ports that the kernel would choose are drawn from the run's seed: programs print them, sort by them and
// hash them.
#include "twin/inside/port_calls.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "twin/inside/baton.hpp"
#include "twin/inside/random_calls.hpp"

namespace weir::twin {
namespace {

// Of both families, in a place large enough for either.
union InternetAddress {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
};

bool is_internet(const InternetAddress& address, socklen_t bytes) {
  return (address.any.sa_family == AF_INET && bytes >= sizeof address.four) ||
         (address.any.sa_family == AF_INET6 && bytes >= sizeof address.six);
}

in_port_t& port_of(InternetAddress& address) {
  return address.any.sa_family == AF_INET ? address.four.sin_port : address.six.sin6_port;
}

// As the kernel's own: the same range, another one if that is taken.
int bind_to_drawn_port(int descriptor, InternetAddress address, socklen_t bytes) {
  constexpr unsigned first = 32768, count = 28232, max_tries = 64;
  for (unsigned tries = 0; tries < max_tries; ++tries) {
    std::uint32_t drawn = 0;
    draw(&drawn, sizeof drawn);
    port_of(address) = htons(static_cast<in_port_t>(first + drawn % count));
    const int result = WEIR_NEXT(bind)(descriptor, &address.any, bytes);
    if (result == 0 || errno != EADDRINUSE) return result;
  }
  port_of(address) = 0;
  return WEIR_NEXT(bind)(descriptor, &address.any, bytes);
}

}  // namespace

void draw_port_before_connect(int descriptor) {
  const int saved = errno;
  InternetAddress own{};
  socklen_t bytes = sizeof own;
  if (::getsockname(descriptor, &own.any, &bytes) == 0 && is_internet(own, bytes) && port_of(own) == 0)
    (void)bind_to_drawn_port(descriptor, own, bytes);
  errno = saved;
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int bind(int descriptor, const sockaddr* address, socklen_t bytes) noexcept {
  InternetAddress wanted{};
  if (!controlled() || bytes > sizeof wanted) return WEIR_NEXT(bind)(descriptor, address, bytes);
  std::memcpy(&wanted, address, bytes);
  if (!is_internet(wanted, bytes) || port_of(wanted) != 0) return WEIR_NEXT(bind)(descriptor, address, bytes);
  return bind_to_drawn_port(descriptor, wanted, bytes);
}
}
