// What `weir run --check` passes on to the processes of the program.
#pragma once

#include <string>

namespace weir::check {

inline constexpr char check_variable[] = "WEIR_CHECK";  // words: on, strict, stop; unset: off
inline constexpr char json_variable[] = "WEIR_CHECK_JSON";
inline constexpr char suppressions_variable[] = "WEIR_CHECK_SUPPRESSIONS";

struct Settings {
  bool on = false;
  bool strict = false;  // risks set the exit status, too
  bool stop = false;    // SIGTRAP at the first error, for a debugger
  std::string json, suppressions;
};
// Of this process; read once.
const Settings& settings();

// The exit status of a program that ended with 0 although there was an error; ThreadSanitizer's.
inline constexpr int error_status = 66;

}  // namespace weir::check
