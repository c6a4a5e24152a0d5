// Names of calls, error numbers and statuses of completions, as programs and manuals write them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "faults/fault.hpp"

namespace weir::faults {

struct CallName {
  std::string_view name;
  Call call;
};
std::span<const CallName> call_names();
std::string_view name_of(Call call);

struct NumberName {
  std::string_view name;
  std::uint64_t number;
};
std::span<const NumberName> error_names();   // ENOMEM
std::span<const NumberName> status_names();  // IBV_WC_RETRY_EXC_ERR

}  // namespace weir::faults
