#include "rnic/memory/trapped_copy.hpp"

#include <algorithm>
#include <atomic>

// The builtin saves three words. sigsetjmp saves more and costs four times as much, which small messages
// would feel. But sanitizers know only sigsetjmp, and clang has the builtin on few processors.
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SET_WAY_BACK(to) sigsetjmp(to, 0)
#define WEIR_GO_BACK(to) siglongjmp(to, 1)
#define WEIR_OPAQUE gnu::noinline
#else
#define WEIR_SET_WAY_BACK(to) __builtin_setjmp(to)
#define WEIR_GO_BACK(to) __builtin_longjmp(to, 1)
#define WEIR_OPAQUE gnu::noipa
#endif

namespace weir::rnic {

constinit thread_local CopyTrap* copy_trap = nullptr;

namespace {

bool holds(std::uintptr_t begin, std::size_t bytes, std::uintptr_t at) {
  return at >= begin && at - begin < bytes;
}

// x86-64 reports no address for a fault at a non-canonical address.
#if defined(__x86_64__)
constexpr std::uintptr_t addressed_end = 1ull << 47;
#else
constexpr std::uintptr_t addressed_end = UINTPTR_MAX;
#endif

bool misses(std::uintptr_t begin, std::size_t bytes, std::uintptr_t at) {
  if (bytes == 0) return false;
  const bool nameless = begin >= addressed_end || bytes > addressed_end - begin;
  return holds(begin, bytes, at) || (at == 0 && nameless);
}

Trapped side_of(const CopyTrap& trap, std::uintptr_t at) {
  const auto missing = [at](const iovec& piece) {
    return misses(reinterpret_cast<std::uintptr_t>(piece.iov_base), piece.iov_len, at);
  };
  if (std::ranges::any_of(trap.pieces, missing)) return Trapped::pieces;
  const auto target = reinterpret_cast<std::uintptr_t>(trap.target.data());
  return misses(target, trap.target.size(), at) ? Trapped::target : Trapped::no;
}

}  // namespace

bool leave_copy(std::uintptr_t at, const sigset_t& mask) {
  CopyTrap* const trap = copy_trap;
  if (trap == nullptr) return false;
  trap->left_at = side_of(*trap, at);
  if (trap->left_at == Trapped::no) return false;
  trap->mask = mask;
  WEIR_GO_BACK(trap->back);
}

// Opaque to the compiler: it must treat `copy` as a call that control may leave by the other way back, with
// other registers, even if it is only a few instructions.
[[WEIR_OPAQUE]] Trapped run_trapped(CopyTrap& trap, void (*copy)(const void* what), const void* what) {
  trap.outer = copy_trap;
  if (WEIR_SET_WAY_BACK(trap.back) != 0) {
    CopyTrap& left = *copy_trap;
    copy_trap = left.outer;
    ::pthread_sigmask(SIG_SETMASK, &left.mask, nullptr);
    return left.left_at;
  }
  copy_trap = &trap;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy(what);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy_trap = copy_trap->outer;
  return Trapped::no;
}

}  // namespace weir::rnic
