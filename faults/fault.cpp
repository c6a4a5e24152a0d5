#include "faults/fault.hpp"

namespace weir::faults {
namespace {

bool is_meant(std::string_view wanted, std::string_view name) {
  if (wanted.empty()) return true;
  if (!wanted.ends_with('*')) return wanted == name;
  return name.starts_with(wanted.substr(0, wanted.size() - 1));
}

}  // namespace

void keep_for(Plan& plan, std::string_view program, std::string_view host) {
  std::erase_if(plan.faults, [&](const Fault& fault) {
    return !is_meant(fault.program, program) || !is_meant(fault.host, host);
  });
}

}  // namespace weir::faults
