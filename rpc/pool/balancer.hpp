// Which of several servers gets the next call. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::rpc {

enum class Balancing {
  round_robin,
  least_loaded,     // fewest calls of ours in flight; in turn where equal
  consistent_hash,  // calls with equal keys go to the same server, and stay there when others come and go
};
std::string_view name_of(Balancing);

struct Candidate {
  std::uint64_t identity = 0;  // hash of its address
  std::uint32_t in_flight = 0;
  bool usable = true;
};

class Balancer {
 public:
  explicit Balancer(Balancing how) : how_(how) {}
  // Index of the chosen, of those that are usable; none: nullopt.
  std::optional<std::size_t> choose(std::span<const Candidate> candidates, std::uint64_t key);

 private:
  Balancing how_;
  std::size_t next_ = 0;
};

std::uint64_t hash_of(std::string_view text);

}  // namespace weir::rpc
