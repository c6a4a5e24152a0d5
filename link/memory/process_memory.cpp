#include "link/memory/process_memory.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>

namespace weir::link {
namespace {

constexpr std::size_t max_pieces = 64;        // of a transfer in one call
constexpr std::size_t probe_bytes = 1 << 16;  // the largest page of any kernel
constexpr int place_bits = 46;                // a process may have 47, most have some of the upper half

// The pieces of one call; the probe's, if any, come first.
struct Pieces {
  std::array<iovec, max_pieces + 1> of;
  std::size_t count = 0;

  void add(iovec piece) { of[count++] = piece; }
  // What remains after `done` bytes, as far as there is room.
  void add_rest(std::span<const iovec> from, std::size_t done) {
    for (const iovec& piece : from) {
      if (count == of.size()) return;
      const std::size_t skip = std::min(done, piece.iov_len);
      done -= skip;
      if (piece.iov_len != skip) add({static_cast<char*>(piece.iov_base) + skip, piece.iov_len - skip});
    }
  }
};

// A word that each call moves before all else: ours, and theirs.
struct Gate {
  iovec ours, theirs;
};

iovec word_at(std::uint64_t address) {
  return {reinterpret_cast<void*>(address), sizeof(std::uint64_t)};  // NOLINT(performance-no-int-to-ptr)
}

std::size_t total(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

// One call moves at most 2 GiB and may stop early at a page that is not yet there.
template <class Call>
bool transfer(Call call, pid_t pid, const Gate* gate, std::span<const iovec> local,
              std::span<const iovec> remote) {
  const std::size_t bytes = total(local), gate_bytes = gate != nullptr ? gate->ours.iov_len : 0;
  std::size_t done = 0;
  do {
    Pieces ours, theirs;
    if (gate != nullptr) ours.add(gate->ours), theirs.add(gate->theirs);
    ours.add_rest(local, done);
    theirs.add_rest(remote, done);
    const ssize_t moved = call(pid, ours.of.data(), ours.count, theirs.of.data(), theirs.count, 0ul);
    if (moved < 0) return false;
    if (static_cast<std::size_t>(moved) <= gate_bytes && done < bytes) {
      errno = EFAULT;
      return false;
    }
    done += static_cast<std::size_t>(moved) - gate_bytes;
  } while (done < bytes);
  return true;
}

}  // namespace

ProbePage::ProbePage(std::uint64_t place, std::uint64_t token) {
#ifdef __SANITIZE_THREAD__
  place = 0;  // its shadow covers few addresses
#endif
  // Only a hint: where that is not free, or more than this processor has, the kernel chooses.
  const std::uint64_t hint = place & ((std::uint64_t{1} << place_bits) - 1) & ~(probe_bytes - 1);
  void* const at = ::mmap(reinterpret_cast<void*>(hint),  // NOLINT(performance-no-int-to-ptr)
                          probe_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;
  ::madvise(at, probe_bytes, MADV_DONTFORK);
  ::madvise(at, probe_bytes, MADV_DONTDUMP);
  probe_ = new (at) MemoryProbe{.token = token};
}

ProbePage::~ProbePage() {
  if (probe_ != nullptr) ::munmap(probe_, probe_bytes);
}

void allow_tracing() { ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

bool ProcessMemory::reached() const { return pid_ > 0 && read({}, {}) && write({}, {}); }

bool ProcessMemory::write(std::span<const iovec> local, std::span<const iovec> remote) const {
  std::uint64_t token = token_;
  const Gate gate{{&token, sizeof token}, word_at(probe_ + offsetof(MemoryProbe, answer))};
  return transfer(::process_vm_writev, pid_, &gate, local, remote);
}

bool ProcessMemory::read(std::span<const iovec> local, std::span<const iovec> remote) const {
  std::uint64_t token = 0;
  const Gate gate{{&token, sizeof token}, word_at(probe_ + offsetof(MemoryProbe, token))};
  if (!transfer(::process_vm_readv, pid_, &gate, local, remote)) return false;
  if (token == token_) return true;
  errno = ESRCH;
  return false;
}

bool write_own_memory(std::span<const iovec> local, std::span<const iovec> remote) {
  return transfer(::process_vm_writev, ::getpid(), nullptr, local, remote);
}

bool read_own_memory(std::span<const iovec> local, std::span<const iovec> remote) {
  return transfer(::process_vm_readv, ::getpid(), nullptr, local, remote);
}

}  // namespace weir::link
