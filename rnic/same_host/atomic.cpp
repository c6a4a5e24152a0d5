// COMPARE AND SWAP, FETCH AND ADD, ATOMIC WRITE: 64 bits of the target's memory, in the host's byte order
// (IBA 9.4.5, 10.7.2.3).
//
// Atomic with every other atomic that goes through the NIC (IBV_ATOMIC_HCA). All of them hold the lock of
// their word, because one initiator may reach the memory through a mapping while another still goes through
// the kernel. If the word is mapped, the CPU's atomic is used as well, so the target's own atomics are not
// lost. Through the kernel, in two calls, they can be. An ATOMIC WRITE is a WRITE of eight bytes that nobody
// sees half done; it needs the rights of a WRITE.
#include <algorithm>
#include <cstring>

#include "rnic/memory/copy.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {
namespace {

std::uint64_t result_of(SendOpcode opcode, const AtomicOperands& operands, std::uint64_t before) {
  if (opcode == SendOpcode::fetch_and_add) return before + operands.compare_add;
  return before == operands.compare_add ? operands.swap : before;
}

std::uint64_t on_mapped_word(SendOpcode opcode, const AtomicOperands& operands, std::uint64_t& word) {
  const std::atomic_ref<std::uint64_t> shared(word);
  if (opcode == SendOpcode::fetch_and_add)
    return shared.fetch_add(operands.compare_add, std::memory_order_seq_cst);
  std::uint64_t before = operands.compare_add;
  shared.compare_exchange_strong(before, operands.swap, std::memory_order_seq_cst);
  return before;
}

}  // namespace

// The common start of all atomics: the checks and the word's lock, under which `act` runs.
template <class Act>
Outcome RemoteQueuePair::on_word(std::uint64_t addr, std::uint32_t rkey, std::uint32_t right, Act act) {
  const Operation operation(*this, rkey);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  const bool needs_depth = right == access::remote_atomic;  // data comes back
  const bool takes_it = permits(right) && (!needs_depth || permits(access::responder_depth));
  if (!takes_it || addr % atomic_bytes != 0) return not_permitted();  // IBA 9.7.4.1.2: an invalid request
  const TptEntry* entry = check_rkey(addr, atomic_bytes, rkey, right);
  if (entry == nullptr) return nak(Outcome::nak_access, WcStatus::loc_qp_op_err, nullptr, {});
  const auto at = reinterpret_cast<std::uint64_t>(ProtectionTable::address(*entry, addr));
  AtomicLock& lock = memory_->segment().atomic_locks[atomic_lock_of(at)];
  if (const auto taken = lock.take(); taken != AtomicLock::Taken::yes)
    return taken == AtomicLock::Taken::held ? Outcome::contended : Outcome::no_response;
  const Outcome outcome = act(*entry);
  lock.unlock();
  return outcome;
}

Outcome RemoteQueuePair::atomic(SendOpcode opcode, const AtomicOperands& operands, const Gather& into,
                                std::uint64_t addr, std::uint32_t rkey) {
  std::uint64_t before = 0;
  const Outcome outcome = on_word(addr, rkey, access::remote_atomic, [&](const TptEntry& entry) {
    return exchange(opcode, operands, entry, addr, before);
  });
  if (outcome != Outcome::done) return outcome;

  return copied(into, {}, [&] {
    const auto* bytes = reinterpret_cast<const std::byte*>(&before);
    std::size_t left = sizeof before;
    for (const iovec& piece : into.span()) {
      const std::size_t length = std::min(left, piece.iov_len);
      std::memcpy(piece.iov_base, bytes, length);
      bytes += length;
      left -= length;
    }
  });
}

// If the mapping was lost, do not retry another way: the operation may already have happened.
template <class Act>
Outcome RemoteQueuePair::in_place(const TptEntry& entry, std::uint64_t addr, const std::byte* word,
                                  const Act& act) const {
  if (try_copy({}, memory_->own_memory(word, atomic_bytes), act) != Trapped::no)
    return Outcome::nak_operational;
  return memory_->still_there(entry, addr, atomic_bytes) ? Outcome::done : outcome_of(Peer::Transfer::fault);
}

Outcome RemoteQueuePair::exchange(SendOpcode opcode, const AtomicOperands& operands, const TptEntry& entry,
                                  std::uint64_t addr, std::uint64_t& before) const {
  std::byte* const word = memory_->window(entry, addr, atomic_bytes);
  // If a region's iova and address are aligned differently, the CPU cannot exchange some of its words.
  const bool aligned = reinterpret_cast<std::uintptr_t>(word) % alignof(std::uint64_t) == 0;
  if (word != nullptr && aligned) {
    return in_place(entry, addr, word, [&] {
      before = on_mapped_word(opcode, operands, *reinterpret_cast<std::uint64_t*>(word));
    });
  }
  if (word != nullptr) {
    return in_place(entry, addr, word, [&] {
      std::memcpy(&before, word, sizeof before);
      const std::uint64_t after = result_of(opcode, operands, before);
      std::memcpy(word, &after, sizeof after);
    });
  }
  const iovec local{&before, sizeof before};
  const iovec place{ProtectionTable::address(entry, addr), sizeof before};
  const std::uint32_t key = entry.key.load(std::memory_order_relaxed);
  const Peer::Remote remote{{&place, 1}, {&key, 1}};
  if (const Outcome read = outcome_of(memory_->read({&local, 1}, remote)); read != Outcome::done) return read;
  std::uint64_t after = result_of(opcode, operands, before);
  const iovec changed{&after, sizeof after};
  const Peer::Transfer written = memory_->write({&changed, 1}, remote);
  // The copy may yet be made, and must not be made twice: we can only report it.
  return written == Peer::Transfer::unfinished ? Outcome::nak_operational : outcome_of(written);
}

// Takes the word's lock too, so that the write does not fall between the two halves of an atomic
// that goes through the kernel.
Outcome RemoteQueuePair::atomic_write(const Gather& from, std::uint64_t addr, std::uint32_t rkey) {
  std::uint64_t value = 0;
  const Outcome gathered =
      copied(from, {}, [&] { copy_gather(reinterpret_cast<std::byte*>(&value), from.span()); });
  if (gathered != Outcome::done) return gathered;
  return on_word(addr, rkey, access::remote_write,
                 [&](const TptEntry& entry) { return store(value, entry, addr); });
}

Outcome RemoteQueuePair::store(std::uint64_t value, const TptEntry& entry, std::uint64_t addr) const {
  std::byte* const word = memory_->window(entry, addr, atomic_bytes);
  if (word != nullptr) {
    return in_place(entry, addr, word, [&] {
      if (reinterpret_cast<std::uintptr_t>(word) % alignof(std::uint64_t) == 0)
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).store(value, std::memory_order_release);
      else
        std::memcpy(word, &value, sizeof value);
    });
  }
  const iovec local{&value, sizeof value};
  const iovec remote{ProtectionTable::address(entry, addr), sizeof value};
  const std::uint32_t key = entry.key.load(std::memory_order_relaxed);
  return outcome_of(memory_->write({&local, 1}, {{&remote, 1}, {&key, 1}}));
}

}  // namespace weir::rnic
