#include "tensor/memory/memory_tiers.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::tensor {
namespace {

// Takes a hexadecimal number and the character `behind` that must follow it.
bool take_address(std::string_view& line, char behind, std::uintptr_t& address) {
  const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
  if (failed != std::errc() || end == line.data() + line.size() || *end != behind) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

SharedMappings SharedMappings::now() {
  std::ifstream file("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  return SharedMappings(maps);
}

SharedMappings::SharedMappings(std::string_view maps) {
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    std::pair<std::uintptr_t, std::uintptr_t> range;
    if (!take_address(line, '-', range.first) || !take_address(line, ' ', range.second)) continue;
    if (line.size() < 4 || line[3] != 's') continue;
    if (!ranges_.empty() && ranges_.back().second == range.first)
      ranges_.back().second = range.second;
    else
      ranges_.push_back(range);
  }
}

std::uint64_t SharedMappings::bytes_of(std::span<const std::byte> memory) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  std::uint64_t bytes = 0;
  const auto ends_before = [](const auto& range, std::uintptr_t at) { return range.second <= at; };
  for (auto range = std::lower_bound(ranges_.begin(), ranges_.end(), begin, ends_before);
       range != ranges_.end() && range->first < end; ++range)
    bytes += std::min(end, range->second) - std::max(begin, range->first);
  return bytes;
}

}  // namespace weir::tensor
