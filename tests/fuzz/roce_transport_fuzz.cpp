// Parses any bytes as a packet from a UDP socket: an accepted packet encodes to the bytes that it came from,
// and the ICRC that we compute is the one that we accept.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "wire/roce.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::wire;
  const auto bytes = std::as_bytes(std::span(data, size));
  IcrcRoute::Ends ends;
  ends.source[10] = ends.source[11] = ends.destination[10] = ends.destination[11] = size % 2 != 0 ? 0xff : 0;
  const IcrcRoute route(ends);
  (void)route.check(bytes);
  const auto packet = parse_transport(bytes);
  if (!packet) return 0;
  std::array<std::byte, longest_headers> headers;
  const std::size_t length = encode_headers(*packet, packet->payload.size(), headers);
  std::vector<std::byte> again(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(length));
  again.insert(again.end(), packet->payload.begin(), packet->payload.end());
  again.resize(again.size() + pad_of(packet->payload.size()));
  if (!std::ranges::equal(again, bytes)) std::abort();
  if (again.size() > 9000) return 0;
  const auto icrc = route.of(again, 7);
  again.insert(again.end(), icrc.begin(), icrc.end());
  if (route.check(again) != (route.is_ipv4() ? 7 : 0)) std::abort();
  return 0;
}
