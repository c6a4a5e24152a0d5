// The faults that the environment asks for: `weir run --faults` and `--fault` set these variables.
#pragma once

#include <optional>
#include <string>

#include "faults/fault.hpp"
#include "link/same_host.hpp"

namespace weir::verbs {

inline constexpr char faults_variable[] = "WEIR_FAULTS";  // path of a file
inline constexpr char fault_variable[] = "WEIR_FAULT";    // lines, or faults with ';' between them

inline constexpr char faults_json_variable[] = "WEIR_FAULTS_JSON";  // path of a file to append to
// Set to anything: also workflow commands of GitHub (action.yml).
inline constexpr char faults_annotations_variable[] = "WEIR_FAULTS_ANNOTATIONS";

// How the faults of this process are reported, besides for people.
struct FaultReports {
  std::string json_file;  // empty: not as JSON
  bool annotations = false;
  std::string faults_file;  // for annotations
};
const FaultReports& fault_reports();  // read once

// Read once, without the faults of other programs and hosts. nullopt: none. The error is text to print; a
// program that asks for faults and gets none would pass its test.
const link::Result<std::optional<faults::Plan>>& fault_plan();
// Whether packets are to go between processes that could use shared memory, since faults are about them.
bool faults_want_packets();

}  // namespace weir::verbs
