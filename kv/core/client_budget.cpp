#include "kv/core/client_budget.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::kv {

namespace {

// Redis's own: with less nobody could talk to the server any more.
constexpr std::size_t least_limit = 128 * 1024;

std::size_t limit_in(const Settings& settings) {
  const std::int64_t wanted = settings.maxmemory_clients;
  if (wanted == 0) return 0;
  std::size_t most = std::numeric_limits<std::size_t>::max();
  if (wanted > 0) most = static_cast<std::size_t>(wanted);
  if (wanted < 0 && settings.maxmemory > 0) {
    const double part = static_cast<double>(-wanted) / 100;
    most = static_cast<std::size_t>(static_cast<double>(settings.maxmemory) * part);
  }
  return std::max(most, least_limit);
}

}  // namespace

bool ClientBudget::take_limit(const Settings& settings) {
  const bool counted = counts();
  most_ = limit_in(settings);
  return counts() != counted;
}

}  // namespace weir::kv
