// Which CPUs a thread runs on: "0-6:2,9" as server-cpulist and bio-cpulist say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::kv {

// The numbers of the CPUs; nothing: the text is no list. "1", "0-3", "0-6:2" (each second), separated by
// commas.
std::optional<std::vector<unsigned>> parse_cpu_list(std::string_view text);

// Binds this thread, and those that it starts from now on. Returns why it cannot; empty: it is bound.
std::string run_on_cpus(std::string_view list);

}  // namespace weir::kv
