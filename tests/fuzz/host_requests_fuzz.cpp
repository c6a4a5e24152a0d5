// Bytes to a keeper of hosts, and from one: what is accepted means the same when it is written anew.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "twin/hosts/requests.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::hosts;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = read_request(text); request && text_of(*request) != text) std::abort();
  if (const auto listing = read_listing(text); listing && read_listing(text_of(*listing)) != listing)
    std::abort();
  if (const auto variables = read_variables(text)) {
    const auto again = read_variables(text_of(*variables, "{host}"));
    if (!again || again != variables) std::abort();
  }
  return 0;
}
