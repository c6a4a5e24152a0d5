#include "fabric/plan/plan.hpp"

#include <algorithm>

namespace weir::fabric {

bool Plan::has(Severity severity) const {
  return std::ranges::find(findings, severity, &Finding::severity) != findings.end();
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::fault:
      return "fault";
  }
  return "";
}

std::string_view name_of(CableKind kind) {
  switch (kind) {
    case CableKind::copper:
      return "copper";
    case CableKind::fibre:
      return "fibre";
    case CableKind::active_optical:
      return "aoc";
  }
  return "";
}

}  // namespace weir::fabric
