// Null memory regions (ibv_alloc_null_mr(3)): writes into one are discarded, reads return zeros. Local work
// requests may name any address in it; its key is not valid as an rkey.
//
// The NIC copies to and from real memory, so the region has some, as large as the longest message: a small
// file mapped over and over that takes the discarded bytes, followed by pages that nobody ever writes
// (rnic::access::null). There is one for the whole process; the first null region makes it, and it is kept.
#include <sys/mman.h>

#include <cerrno>

#include "link/memory/mapping.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

constexpr std::size_t discarding_bytes = 4u << 20;
static_assert(rnic::max_message_bytes % discarding_bytes == 0);

// nullptr with errno on failure.
std::byte* make_null_memory() {
  constexpr std::size_t half = rnic::max_message_bytes;
  const link::UniqueFd file = link::make_shared_file("weir-null", discarding_bytes);
  if (!file) return nullptr;
  void* const at = ::mmap(nullptr, 2 * half, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const base = static_cast<std::byte*>(at);
  for (std::size_t done = 0; done < half; done += discarding_bytes) {
    if (::mmap(base + done, discarding_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(),
               0) != MAP_FAILED)
      continue;
    const int why = errno;
    ::munmap(base, 2 * half);
    errno = why;
    return nullptr;
  }
  return base;
}

std::byte* null_memory() {
  static std::mutex mutex;
  static std::byte* memory = nullptr;
  const std::lock_guard lock(mutex);
  if (memory == nullptr) memory = make_null_memory();
  return memory;
}

}  // namespace

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  const std::byte* const memory = null_memory();
  if (memory == nullptr) return nullptr;
  const auto key = context_of(pd->context)
                       .adapter()
                       .table()
                       .insert({.base = reinterpret_cast<std::uint64_t>(memory),
                                .length = UINT64_MAX,
                                .access = rnic::access::local_write | rnic::access::null,
                                .pd = pd_of(pd).number});
  if (!key) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* mr = new Mr{};
  mr->mr = {pd->context, pd, nullptr, SIZE_MAX, *key >> 8, *key, 0};
  mr->access = IBV_ACCESS_LOCAL_WRITE;
  pd_of(pd).users.fetch_add(1);
  return &mr->mr;
}

}  // namespace weir::verbs
