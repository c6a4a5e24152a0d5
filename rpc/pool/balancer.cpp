#include "rpc/pool/balancer.hpp"

#include <array>

namespace weir::rpc {

namespace {
// The finaliser of SplitMix64: spreads every bit of its argument over the result.
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}
}  // namespace

std::string_view name_of(Balancing how) {
  constexpr std::array<std::string_view, 3> names{"round robin", "least loaded", "consistent hash"};
  return names.at(static_cast<std::size_t>(how));
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix(hash);
}

// Consistent hashing by highest weight (Thaler and Ravishankar, 1998): each server weighs
// hash(key, server), and the heaviest gets the call. A server that leaves moves only its own keys,
// and no ring must be kept.
std::optional<std::size_t> Balancer::choose(std::span<const Candidate> candidates, std::uint64_t key) {
  const std::size_t count = candidates.size();
  std::optional<std::size_t> best;
  std::uint64_t best_weight = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (next_ + i) % count;
    const Candidate& one = candidates[at];
    if (!one.usable) continue;
    if (how_ == Balancing::round_robin) {
      best = at;
      break;
    }
    const std::uint64_t weight =
        how_ == Balancing::least_loaded ? UINT64_MAX - one.in_flight : mix(key ^ mix(one.identity));
    if (!best || weight > best_weight) {
      best = at;
      best_weight = weight;
    }
  }
  if (best) next_ = (*best + 1) % count;
  return best;
}

}  // namespace weir::rpc
