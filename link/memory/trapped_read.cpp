#include "link/memory/trapped_read.hpp"

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>

#include "link/memory/fault_signal.hpp"

namespace weir::link {
namespace {

struct Attempt {
  std::span<const iovec> from;
  sigjmp_buf back;
  sigset_t mask{};  // to be restored
};

// Of this thread; nullptr: none. The handler, in the same thread, is its only other reader. In every thread
// from its start on: elsewhere the first look of a handler, at a fault in malloc, say, would allocate it.
[[gnu::tls_model("initial-exec")]] constinit thread_local Attempt* attempt = nullptr;

bool is_in(const iovec& piece, std::uintptr_t at) {
  const auto begin = reinterpret_cast<std::uintptr_t>(piece.iov_base);
  return at >= begin && at - begin < piece.iov_len;
}

bool leave(std::uintptr_t at, const sigset_t& mask) {
  if (attempt == nullptr || std::ranges::none_of(attempt->from, [at](auto& each) { return is_in(each, at); }))
    return false;
  attempt->mask = mask;
  siglongjmp(attempt->back, 1);
}

// x86-64 raises a fault without an address for one that is not canonical.
#if defined(__x86_64__)
constexpr std::uintptr_t addressed_end = 1ull << 47;
#else
constexpr std::uintptr_t addressed_end = UINTPTR_MAX;
#endif

bool says_its_address(const iovec& piece) {
  const auto begin = reinterpret_cast<std::uintptr_t>(piece.iov_base);
  return begin < addressed_end && piece.iov_len <= addressed_end - begin;
}

}  // namespace

bool can_trap_reads(std::span<const iovec> from, std::uint64_t now_ns) {
  static const bool installed = mend_faults(SIGBUS, leave) && mend_faults(SIGSEGV, leave);
  constexpr std::uint64_t looks_every_ns = 1'000'000;
  thread_local std::uint64_t looked_ns = 0;
  thread_local bool caught = false;
  if (looked_ns == 0 || now_ns - looked_ns >= looks_every_ns) {
    caught = installed && faults_are_caught();
    looked_ns = now_ns;
  }
  return caught && std::ranges::all_of(from, says_its_address);
}

// Never inlined: what it and its caller have in registers is not what it was after a jump.
[[gnu::noinline]] bool try_reading(std::span<const iovec> from, void (*copy)(void* what), void* what) {
  Attempt made{.from = from, .back = {}};
  if (sigsetjmp(made.back, 0) == 0) {
    attempt = &made;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    copy(what);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    attempt = nullptr;
    return true;
  }
  attempt = nullptr;
  ::pthread_sigmask(SIG_SETMASK, &made.mask, nullptr);
  return false;
}

}  // namespace weir::link
