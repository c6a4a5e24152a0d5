#include "tests/bystander/table.hpp"

#include <algorithm>
#include <sstream>

namespace weir::bystander {
namespace {

void by_transport(std::ostringstream& out, const Watch& watch) {
  out << "| bystander over | asks | p50 ms | p99 | p99.9 | worst | visits | p50 ms | p99 | worst |\n"
         "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (std::size_t transport = 0; transport < transports.size(); ++transport) {
    const auto of = [&](Visit visit) {
      return watch.select([&](const Wait& w) { return w.transport == transport && w.visit == visit; });
    };
    const Waits asks = of(Visit::standing), visits = of(Visit::fresh);
    out << "| " << transports[transport] << " | " << asks.count();
    for (const double percent : {50., 99., 99.9}) out << " | " << milliseconds(asks.percentile_us(percent));
    out << " | " << milliseconds(asks.worst_us()) << " | " << visits.count();
    for (const double percent : {50., 99.}) out << " | " << milliseconds(visits.percentile_us(percent));
    out << " | " << milliseconds(visits.worst_us()) << " |\n";
  }
}

void by_misdeed(std::ostringstream& out, const std::vector<Row>& rows, const Watch& watch) {
  std::vector<std::string> names;
  for (const Row& row : rows)
    if (std::ranges::find(names, row.misdeed) == names.end()) names.push_back(row.misdeed);
  out << "\n| misdeed | deeds | server grew, MiB |";
  for (const char* transport : transports) out << " " << transport << " |";
  out << " new: worst | from |\n|---|---:|---:|" << "---:|---:|---:|---:|---:|---:|---|\n";
  for (const std::string& name : names) {
    std::uint64_t deeds = 0;
    std::int64_t grown = 0;
    for (const Row& row : rows)
      if (row.misdeed == name) deeds += row.deeds, grown = std::max(grown, row.grown_bytes);
    const auto worst = [&](auto which) {
      return watch.select([&](const Wait& w) { return rows[w.during].misdeed == name && which(w); })
          .worst_us();
    };
    out << "| " << name << " | " << deeds << " | " << (grown >> 20);
    for (std::size_t transport = 0; transport < transports.size(); ++transport)
      out << " | " << milliseconds(worst([&](const Wait& w) {
        return w.transport == transport && w.visit == Visit::standing;
      }));
    out << " | " << milliseconds(worst([](const Wait& w) { return w.visit == Visit::fresh; }));
    // The attacker's transport when a bystander waited longest.
    std::uint32_t longest = 0;
    std::string from;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].misdeed != name) continue;
      const std::uint32_t us = watch.select([&](const Wait& w) { return w.during == i; }).worst_us();
      if (us >= longest) longest = us, from = rows[i].over;
    }
    out << " | " << from << " |\n";
  }
}

}  // namespace

std::string table_of(const std::vector<Row>& rows, const Watch& watch) {
  std::ostringstream out;
  by_transport(out, watch);
  by_misdeed(out, rows, watch);
  return out.str();
}

}  // namespace weir::bystander
