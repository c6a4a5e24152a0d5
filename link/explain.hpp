// One line on standard error for the user of a program that only knows an errno or a status. Once for each
// cause in a process, for a program tries again.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

namespace weir::link {

// True for the first caller; it is to say why then.
inline bool first_time(std::atomic_flag& said) { return !said.test_and_set(std::memory_order_relaxed); }

inline void explain(const std::string& why) { std::fprintf(stderr, "weir: %s\n", why.c_str()); }

}  // namespace weir::link
