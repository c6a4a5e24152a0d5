#include "kv/cpu_list.hpp"

#include <sched.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace weir::kv {

namespace {

constexpr unsigned most_cpus = CPU_SETSIZE;

std::optional<unsigned> number_at_front(std::string_view& text) {
  unsigned value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return value;
}

std::optional<unsigned> number_behind(char sign, std::string_view& text, unsigned missing) {
  if (!text.starts_with(sign)) return missing;
  text.remove_prefix(1);
  return number_at_front(text);
}

}  // namespace

std::optional<std::vector<unsigned>> parse_cpu_list(std::string_view text) {
  std::vector<unsigned> cpus;
  for (bool more = true; more;) {
    const auto first = number_at_front(text);
    const auto last = first ? number_behind('-', text, *first) : std::nullopt;
    const auto step = last ? number_behind(':', text, 1) : std::nullopt;
    if (!step || *step == 0 || *last < *first || *last >= most_cpus) return std::nullopt;
    for (unsigned cpu = *first; cpu <= *last; cpu += *step) cpus.push_back(cpu);
    more = text.starts_with(',');
    if (more) text.remove_prefix(1);
  }
  return text.empty() ? std::optional(cpus) : std::nullopt;
}

std::string run_on_cpus(std::string_view list) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned cpu : parse_cpu_list(list).value_or(std::vector<unsigned>())) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return "cannot run on the CPUs " + std::string(list) + ": " + std::strerror(errno) +
         ". Check --server-cpulist.";
}

}  // namespace weir::kv
