#include "twin/inside/random_calls.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "twin/inside/baton.hpp"

namespace weir::twin {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::size_t draw(void* to, std::size_t bytes) {
  const auto number = static_cast<std::uint64_t>(&process() - arena().processes.data());
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t rest = bytes; rest != 0;) {
    const std::uint64_t word = mix(arena().seed ^ mix(number << 32 | process().drawn++));
    const std::size_t some = std::min(rest, sizeof word);
    std::memcpy(out, &word, some);
    out += some;
    rest -= some;
  }
  return bytes;
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {
ssize_t getrandom(void* to, size_t bytes, unsigned flags) {
  if (!controlled()) return WEIR_NEXT(getrandom)(to, bytes, flags);
  return static_cast<ssize_t>(draw(to, bytes));
}
int getentropy(void* to, size_t bytes) {
  if (!controlled()) return WEIR_NEXT(getentropy)(to, bytes);
  if (bytes > 256) return errno = EIO, -1;
  draw(to, bytes);
  return 0;
}
std::uint32_t arc4random() noexcept {
  std::uint32_t word = 0;
  return ::getentropy(&word, sizeof word) == 0 ? word : 0;
}
}
