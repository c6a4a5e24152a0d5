// A file of faults. An accepted one has limits that hold, and means the same when its faults are written
// down as they were understood; a refused one has a complaint about a line that it has.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "faults/language.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::faults;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = read_plan(text);
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  if (!plan) {
    const Mistake& mistake = plan.error();
    if (mistake.what.empty() || mistake.word.empty() || mistake.line == 0 || mistake.line > lines)
      std::abort();
    return 0;
  }
  if (plan->faults.size() > max_faults) std::abort();
  std::string again;
  for (const Fault& fault : plan->faults) {
    if (fault.line == 0 || fault.line > lines) std::abort();
    again += fault.text + "\n";
  }
  const auto second = read_plan(again);
  if (!second || second->faults.size() != plan->faults.size()) std::abort();
  for (std::size_t i = 0; i < plan->faults.size(); ++i)
    if (second->faults[i].act != plan->faults[i].act || second->faults[i].amount != plan->faults[i].amount)
      std::abort();
  return 0;
}
