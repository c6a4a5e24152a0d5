// Parses a message as a process of another user may send it. A run that parses lies within the message,
// splits into packets that are each long enough for a header, and survives being encoded and parsed again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "link/users/carried_run.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace link = weir::link;
  const auto message = std::as_bytes(std::span(data, size));
  if (const auto slot = link::parse_greeting(message)) {
    if (*slot == 0 || *slot >= link::max_slots) std::abort();
    if (!std::ranges::equal(link::encode_greeting(*slot), message)) std::abort();
  }
  const auto run = link::parse_run(message);
  if (!run) return 0;
  if (run->bytes.size() + link::run_header_bytes != size) std::abort();
  if (run->bytes.empty() || run->bytes.size() > link::max_carried_bytes || run->segment == 0) std::abort();
  if (run->bytes.size() / run->segment > link::max_carried_packets) std::abort();
  const auto header = link::encode_run_header(*run);
  if (!std::ranges::equal(header, message.first(header.size()))) std::abort();
  return 0;
}
