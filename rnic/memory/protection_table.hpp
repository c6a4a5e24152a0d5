// The translation-and-protection table: which ranges of this process's memory the NIC may touch, for which
// queue pairs, and with what rights.
//
// A key is 4 bits of generation, the entry's 20-bit index, 8 bits of generation: one from before a
// deregistration no longer matches. The same number serves as lkey and rkey. Indices and generations follow a
// secret order (secret_order.hpp), so that a peer that knows some keys can derive no other; entries still lie
// in as few blocks of the table as will hold them, because each page of it that is touched costs memory.
// Neighbours map the table read-only and check their own accesses
// against it (rnic/same_host/responder.cpp), so registration publishes an entry by storing its key last, and
// deregistration stores key 0 first and then waits for every initiator that was already past its check
// (Adapter::drain_initiators).
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "hash/siphash.hpp"
#include "rnic/memory/segment_layout.hpp"

namespace weir::rnic {

struct Region {
  std::uint64_t addr = 0;  // as work requests name it (the iova)
  std::uint64_t base = 0;  // virtual address of its first byte in the owner
  std::uint64_t length = 0;
  std::uint32_t access = 0;
  std::uint32_t pd = 0;
  std::uint32_t window = 0;  // 0: private memory
  std::uint64_t window_offset = 0;
};

class ProtectionTable {
 public:
  // `entries` is a shared mapping of max_keys zeroed entries that outlives this object.
  explicit ProtectionTable(TptEntry* entries) : entries_(entries) {}

  // Call before the first key, with a random number that nobody else knows.
  void begin_with(std::uint64_t secret) { secret_ = {secret, ~secret}; }
  // The new key; nullopt when the table is full.
  std::optional<std::uint32_t> insert(const Region&);
  // Reserves an entry for a memory window: its key is not valid before publish().
  std::optional<std::uint32_t> reserve();
  // Makes a reserved entry valid under a key of the caller's choice that has the entry's index.
  void publish(std::uint32_t key, const Region&, Qpn only);
  // Invalidates the key. The caller drains initiators and then calls release(), after which the index may be
  // reused.
  void invalidate(std::uint32_t key);
  void release(std::uint32_t key);
  void release_window(std::uint32_t key);
  // Changes access or PD in place: same key (ibv_rereg_mr without translation).
  void update(std::uint32_t key, std::uint32_t access, std::uint32_t pd);

  using Use = rnic::Use;
  const TptEntry& entry(std::uint32_t key) const { return entries_[(key >> 8) & (max_keys - 1)]; }

  // Whether a local sge may be used: valid lkey, same PD, in bounds, writable where the NIC will write.
  bool allows(const Sge& sge, std::uint32_t pd, Use use) const {
    const TptEntry& e = entry(sge.lkey);
    const std::uint32_t need = access::local_read | (use == Use::write ? access::local_write : 0);
    if (sge.length == 0) return true;
    return e.key.load(std::memory_order_acquire) == sge.lkey && e.pd == pd &&
           in_bounds(e, sge.addr, sge.length) && (e.access & need) == need;
  }
  // Where that byte of a region is in the owner's address space. Work requests name memory by integers, as
  // the verbs API does; here they become addresses.
  static void* address(const TptEntry& e, std::uint64_t addr, Use use = Use::write) {
    std::uint64_t at = e.base + (addr - e.addr);
    if (e.access & access::null) [[unlikely]]
      at = use == Use::write ? e.base : e.base + max_message_bytes;
    return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): see above
  }

  static bool in_bounds(const TptEntry& e, std::uint64_t addr, std::uint64_t length) {
    // Written so that addr + length cannot wrap.
    return addr >= e.addr && addr - e.addr <= e.length && length <= e.length - (addr - e.addr);
  }

 private:
  TptEntry* entries_;
  enum class For : bool { region, window };
  std::optional<std::uint32_t> take_index(For);
  std::uint32_t next_key(std::uint32_t place);
  std::uint32_t index_of_place(std::uint32_t place) const;
  std::uint32_t place_of(std::uint32_t key) const;
  void fill(std::uint32_t key, const Region&, Qpn only);

  hash::SipKey secret_;
  std::mutex mutex_;
  std::uint32_t regions_ = 0, windows_ = 0;
  // Places are taken in order; the secret says which index each is.
  std::uint32_t fresh_ = 0;
  std::deque<std::uint32_t> free_;
  std::vector<std::uint16_t> uses_;  // by place: how often it was taken
};

}  // namespace weir::rnic
