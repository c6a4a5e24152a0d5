// Which index the next queue pair gets, and so its number: at random, so that a stranger who wants to forge
// its packets must guess it, and none that was used a short while ago, so that what is still on its way to a
// queue pair that has ended does not meet another.
//
// Indices come from a window at the beginning of the table, which grows with the number of queue pairs: loops
// over all contexts ever used, and the memory that they touch, stay small. The order within the window is a
// permutation under a secret key, and a new one each time that it has been gone through.
//
// Threading: for_each_used() from any thread; all else under the adapter's lock.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "rnic/memory/secret_order.hpp"
#include "rnic/types.hpp"

namespace weir::rnic {

class QueuePairNumbers {
 public:
  static constexpr unsigned least_bits = 11;  // of the window
  static constexpr std::uint32_t first = 2;   // 0 means no queue pair, 1 is the connection manager's

  // Without a secret they come in order.
  void begin(std::uint64_t secret) { key_ = {secret, ~secret}; }

  // `live`: how many there are. nullopt: all are `taken`.
  template <class Taken>
  std::optional<std::uint32_t> next(std::size_t live, Taken taken) {
    if (live >= window() / 4 && bits_ < qp_index_bits) grow();
    handed_out_.resize(window());
    for (std::uint32_t tries = 0; tries < window(); ++tries) {
      const std::uint32_t index = step();
      if (index >= first && !is_recent(index) && !taken(index)) return hand_out(index);
    }
    // Those tries can pass over an index, where the order changes on the way. These look at each, also at
    // recent ones.
    const std::uint32_t begin = step();
    for (std::uint32_t tries = 0; tries < window(); ++tries) {
      const std::uint32_t index = (begin + tries) % window();
      if (index >= first && !taken(index)) return hand_out(index);
    }
    if (bits_ == qp_index_bits) return std::nullopt;
    grow();
    return next(live, taken);
  }

  // Visits each index that a queue pair ever had, in order.
  template <class Visit>
  void for_each_used(Visit visit) const {
    for (std::uint32_t i = 0; i < used_.size(); ++i)
      for (std::uint64_t bits = used_[i].load(std::memory_order_seq_cst); bits != 0; bits &= bits - 1)
        visit(i * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }

 private:
  std::uint32_t window() const { return std::uint32_t{1} << bits_; }
  void grow() {
    ++bits_;
    at_ = 0;
    ++round_;
  }
  std::uint32_t hand_out(std::uint32_t index) {
    handed_out_[index] = ++serial_;
    used_[index / 64].fetch_or(std::uint64_t{1} << index % 64, std::memory_order_seq_cst);
    return index;
  }
  bool is_recent(std::uint32_t index) const {
    return handed_out_[index] != 0 && serial_ - handed_out_[index] < window() / 4;
  }
  std::uint32_t step() {
    const std::uint32_t index = at_;
    if (++at_ == window()) {
      at_ = 0;
      ++round_;
    }
    return key_.first == 0 ? index : in_order(index);
  }

  // A number of bits that is odd is rounded up: what falls beyond the window is sent through it again.
  std::uint32_t in_order(std::uint32_t index) const {
    const unsigned even = (bits_ + 1) / 2 * 2;
    do index = in_secret_order(key_, round_, even, index);
    while (index >= window());
    return index;
  }

  hash::SipKey key_;
  unsigned bits_ = least_bits;
  std::uint32_t at_ = first;
  std::uint32_t round_ = 0;
  std::uint32_t serial_ = 0;               // of the last one handed out
  std::vector<std::uint32_t> handed_out_;  // by index: when last
  std::array<std::atomic<std::uint64_t>, max_qps / 64> used_{};
};

}  // namespace weir::rnic
