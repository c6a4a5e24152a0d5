// The headers of datagrams from any sender, over UDP or from a queue pair.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "verbs/rsocket/datagram_wire.hpp"

namespace {

// What parses survives being encoded and parsed again, with nothing behind it.
template <class Header, class Parse>
void check(std::span<const std::byte> bytes, Parse parse) {
  const auto parsed = parse(bytes);
  if (!parsed) return;
  if (parsed->rest.size() > bytes.size()) std::abort();
  std::vector<std::byte> again;
  append(again, Header(parsed->header));
  const auto back = parse(again);
  // An IPv6 header may hold a mapped IPv4 address, which is encoded as what it is.
  if (!back || !back->rest.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::rsocket;
  const auto bytes = std::as_bytes(std::span(data, size));
  check<UdpHeader>(bytes, parse_udp);
  check<UdHeader>(bytes, parse_ud);
  return 0;
}
