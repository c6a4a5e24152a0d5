#include "hash/process_key.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weir::hash::detail {

SipKey draw_process_key() noexcept {
  SipKey key;
  ssize_t drawn;
  do {
    drawn = getrandom(&key, sizeof key, 0);  // 256 bytes or fewer come at once or not at all
  } while (drawn < 0 && errno == EINTR);
  if (drawn != ssize_t{sizeof key}) {
    std::fprintf(stderr, "weir: no random numbers for the secret of the hash tables: %s\n",
                 std::strerror(errno));
    std::abort();
  }
  return key;
}

}  // namespace weir::hash::detail
