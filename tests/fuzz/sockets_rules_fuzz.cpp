// Rules of WEIR_SOCKETS_RULES from a file. Accepted rules stay within the limit and give a decision;
// others cause a complaint.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sockets/rules.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::sockets::Rules;
  const auto rules = Rules::parse({reinterpret_cast<const char*>(data), size});
  if (!rules) return rules.error().empty() ? (std::abort(), 0) : 0;
  if (rules->size() > Rules::most_rules) std::abort();
  const bool one = rules->allow("program", 1, 65535), again = rules->allow("program", 65535, 1);
  if (one != again) std::abort();  // a port is of either end
  return 0;
}
