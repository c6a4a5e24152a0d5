#include "kv/stack_limit.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

namespace weir::kv {

std::string widen_stack() {
  constexpr rlim_t usual = rlim_t{8} << 20;
  constexpr rlim_t enough = rlim_t{1} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= enough) return {};
  limit.rlim_cur = std::min(usual, limit.rlim_max);
  if (limit.rlim_cur < enough || ::setrlimit(RLIMIT_STACK, &limit) != 0)
    return "the stack may have no more than " + std::to_string(limit.rlim_cur >> 10) +
           " KiB, and the server needs 1024: raise ulimit -s, or LimitSTACK= of the service.";
  // The library has taken the size for new threads from the limit as it was.
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return {};
  if (::pthread_attr_setstacksize(&attributes, limit.rlim_cur) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
  return {};
}

}  // namespace weir::kv
