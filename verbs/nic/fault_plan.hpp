// The faults that the environment asks for: `weir run --faults` and `--fault` set these variables.
#pragma once

#include <optional>

#include "faults/fault.hpp"
#include "link/same_host.hpp"

namespace weir::verbs {

inline constexpr char faults_variable[] = "WEIR_FAULTS";  // path of a file
inline constexpr char fault_variable[] = "WEIR_FAULT";    // lines, or faults with ';' between them

// Read once. nullopt: none. The error is text to print; a program that asks for faults and gets none would
// pass its test.
const link::Result<std::optional<faults::Plan>>& fault_plan();
// Whether packets are to go between processes that could use shared memory, since faults are about them.
bool faults_want_packets();

}  // namespace weir::verbs
