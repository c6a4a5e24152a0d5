// A table in the shared segment whose entries each belong to a queue pair: multicast attachments, steering
// rules.
//
// Neighbours read it while it changes, so an entry's queue pair is stored last and cleared first. Changes are
// made under the owner's lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::rnic {

template <class Entry>
struct QpEntries {
  std::span<Entry> table;
  std::atomic<std::uint32_t>& used;  // no entry at or above this was ever used

  // A neighbour may have written nonsense into `used`.
  std::span<Entry> ever_used() const {
    return table.first(std::min<std::size_t>(used.load(std::memory_order_relaxed), table.size()));
  }

  // Returns the entry's index; nothing when the table is full. `fill` writes the entry's contents.
  template <class Fill>
  std::optional<std::uint32_t> add(std::uint32_t qp_index, Fill fill) const {
    const std::span<Entry> known = ever_used();
    const auto free = std::ranges::find(known, 0u, [](const Entry& entry) { return owner_of(entry); });
    const auto place = static_cast<std::uint32_t>(free - known.begin());
    if (place == table.size()) return std::nullopt;
    fill(table[place]);
    // release: a sender that sees the queue pair must see the entry's contents.
    table[place].qp.store(qp_index + 1, std::memory_order_release);
    if (place == known.size()) used.store(place + 1, std::memory_order_release);
    return place;
  }

  void forget(std::uint32_t qp_index) const {
    for (Entry& entry : ever_used())
      if (owner_of(entry) == qp_index + 1) entry.qp.store(0, std::memory_order_release);
  }

 private:
  static std::uint32_t owner_of(const Entry& entry) { return entry.qp.load(std::memory_order_relaxed); }
};

}  // namespace weir::rnic
