// Parses a connection manager message as another process may send it. A parsed message is in range, and
// survives being encoded and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "verbs/cm/cm_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace cm = weir::cm;
  const auto message = cm::parse(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  if (message->private_data.size() > cm::private_data_limit(message->type)) std::abort();
  if (message->qpn >> 24 != 0 || message->psn >> 24 != 0) std::abort();
  const auto bytes = cm::encode(*message);
  const auto again = cm::parse(bytes);
  if (!again || cm::encode(*again) != bytes) std::abort();
  return 0;
}
