#include "fabric/topology/complaint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace weir::fabric {
namespace {
constexpr std::size_t most_shown = 20;
}

std::string text(const Complaint& complaint) {
  const auto& [file, line, column] = complaint.place;
  std::string out = file ? *file : "input";
  if (line) out += fmt::format(":{}:{}", line, column);
  return out + ": " + complaint.what + "; " + complaint.fix;
}

void Complaints::add(Place place, std::string what, std::string fix) {
  all_.push_back({std::move(place), std::move(what), std::move(fix)});
}

std::string Complaints::text() const {
  auto sorted = all_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Complaint& a, const Complaint& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(sorted.size(), most_shown); ++i) out += fabric::text(sorted[i]) + '\n';
  if (sorted.size() > most_shown) out += fmt::format("and {} more\n", sorted.size() - most_shown);
  return out;
}

}  // namespace weir::fabric
