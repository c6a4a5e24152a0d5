#include "link/memory/process_memory.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

namespace weir::link {
namespace {

constexpr std::size_t max_pieces = 64;

std::size_t total(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

// The pieces that remain after `done` bytes.
std::size_t remaining(std::span<const iovec> from, std::size_t done, std::array<iovec, max_pieces>& to) {
  std::size_t count = 0;
  for (const iovec& piece : from.first(std::min(from.size(), max_pieces))) {
    const std::size_t skip = std::min(done, piece.iov_len);
    done -= skip;
    if (piece.iov_len == skip) continue;
    to[count++] = {static_cast<char*>(piece.iov_base) + skip, piece.iov_len - skip};
  }
  return count;
}

// One call moves at most 2 GiB and may stop early at a page that is not yet there.
template <class Call>
bool transfer(Call call, pid_t pid, std::span<const iovec> local, std::span<const iovec> remote) {
  const std::size_t bytes = total(local);
  ssize_t moved = call(pid, local.data(), local.size(), remote.data(), remote.size(), 0ul);
  if (moved < 0) return false;
  for (std::size_t done = static_cast<std::size_t>(moved); done < bytes;
       done += static_cast<std::size_t>(moved)) {
    std::array<iovec, max_pieces> local_rest, remote_rest;
    const std::size_t local_count = remaining(local, done, local_rest);
    const std::size_t remote_count = remaining(remote, done, remote_rest);
    moved = call(pid, local_rest.data(), local_count, remote_rest.data(), remote_count, 0ul);
    if (moved <= 0) {
      if (moved == 0) errno = EFAULT;
      return false;
    }
  }
  return true;
}

}  // namespace

void allow_tracing() { ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

bool reaches(pid_t pid, std::uint64_t probe, std::uint64_t token) {
  if (pid <= 0) return false;  // not in our pid namespace
  MemoryProbe found;
  // These are addresses in another process: NOLINTBEGIN(performance-no-int-to-ptr)
  const iovec into{&found, sizeof found};
  const iovec there{reinterpret_cast<void*>(probe), sizeof found};
  if (!read_process_memory(pid, {&into, 1}, {&there, 1}) || found.token != token) return false;
  const iovec from{&token, sizeof token};
  const iovec answer{reinterpret_cast<void*>(probe + offsetof(MemoryProbe, answer)), sizeof token};
  // NOLINTEND(performance-no-int-to-ptr)
  return write_process_memory(pid, {&from, 1}, {&answer, 1});
}

bool write_process_memory(pid_t pid, std::span<const iovec> local, std::span<const iovec> remote) {
  return transfer(::process_vm_writev, pid, local, remote);
}

bool read_process_memory(pid_t pid, std::span<const iovec> local, std::span<const iovec> remote) {
  return transfer(::process_vm_readv, pid, local, remote);
}

}  // namespace weir::link
