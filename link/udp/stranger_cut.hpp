// How many of strangers' messages to the connection manager the kernel is to let through, so that a flood of
// them neither fills the receive buffer that peers share with them nor costs more than it may.
//
// Counted in windows, by source: networks fall into buckets by a keyed multiplication, which the filter
// computes too (arrival_filter.hpp). A bucket that sends more than its share is cut alone; if those that do
// not are too many together, as with forged sources, all are. Of what is cut, one in a power of two still
// comes, so that what is offered remains known, and honest requests among it get through when repeated.
//
// Not thread-safe. Pure: the caller ends the windows.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <utility>

#include "link/udp/socket_address.hpp"
#include "link/udp/udp_route.hpp"

namespace weir::link {

struct CutSources {
  std::uint32_t salt = 1;     // odd
  std::uint64_t buckets = 0;  // a bit for each that is cut
  unsigned halvings = 0;      // of theirs one in 2^halvings comes
  bool operator==(const CutSources&) const = default;
};

inline constexpr unsigned cut_bucket_bits = 6;

// A network: an IPv4 /24, an IPv6 /64 folded.
inline unsigned cut_bucket_of(const IpAddress& ip, std::uint32_t salt) {
  const auto word = [&](std::size_t at) {
    return std::uint32_t{ip[at]} << 24 | std::uint32_t{ip[at + 1]} << 16 | std::uint32_t{ip[at + 2]} << 8 |
           ip[at + 3];
  };
  const std::uint32_t network = is_v4(ip) ? word(mapped.size()) >> 8 : word(0) ^ word(4);
  return network * salt >> (32 - cut_bucket_bits);
}

class StrangerCut {
 public:
  static constexpr std::chrono::milliseconds window{100};
  // Of one bucket and of all in a window: the rates that Admission takes.
  static constexpr std::uint64_t of_bucket = 500, of_all = 1'000;

  explicit StrangerCut(std::uint32_t salt) { cut_.salt = salt | 1; }

  // A message that came. True: too many have; the window is to end now.
  bool count(const IpAddress& source) {
    ++all_;
    return ++came_[cut_bucket_of(source, cut_.salt)] > of_bucket || all_ > of_all;
  }
  // What to cut from now on.
  const CutSources& end_window() {
    std::uint64_t greedy = 0, modest = 0, buckets = 0;
    for (unsigned bucket = 0; bucket < came_.size(); ++bucket) {
      const std::uint64_t mark = std::uint64_t{1} << bucket;
      const std::uint64_t offered = came_[bucket] << ((cut_.buckets & mark) != 0 ? cut_.halvings : 0);
      if (offered > of_bucket) buckets |= mark;
      (offered > of_bucket ? greedy : modest) += offered;
    }
    if (modest > of_all) {
      buckets = ~std::uint64_t{0};
      greedy += std::exchange(modest, 0);
    }
    const std::uint64_t room = std::max(of_all - std::min(modest, of_all), of_bucket);
    cut_.buckets = buckets;
    const auto halvings = buckets == 0 ? 0 : static_cast<unsigned>(std::bit_width((greedy - 1) / room));
    cut_.halvings = std::min(halvings, max_halvings);
    if (cut_.halvings == 0) cut_.buckets = 0;
    came_ = {};
    all_ = 0;
    return cut_;
  }
  const CutSources& now() const { return cut_; }
  std::uint64_t came() const { return all_; }  // in this window

 private:
  static constexpr unsigned max_halvings = 10;

  CutSources cut_;
  std::array<std::uint64_t, 1u << cut_bucket_bits> came_{};
  std::uint64_t all_ = 0;
};

}  // namespace weir::link
