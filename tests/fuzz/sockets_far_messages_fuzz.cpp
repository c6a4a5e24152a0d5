// What another host sends about a TCP connection that may change to RDMA: a message is refused, or encodes to
// the same bytes again. The first byte chooses the message.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "sockets/far_messages.hpp"

namespace {

template <class Read>
void same_again(Read read, std::span<const std::byte> bytes) {
  const auto value = read(bytes);
  if (!value) return;
  const auto again = weir::sockets::bytes_of(*value);
  const auto twice = read(std::span(again));
  if (!twice || weir::sockets::bytes_of(*twice) != again) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 5) {
    case 0:
      same_again(weir::sockets::read_request, bytes);
      break;
    case 1:
      same_again(weir::sockets::read_refusal, bytes);
      break;
    case 2:
      same_again(weir::sockets::read_hello, bytes);
      break;
    case 3:
      same_again(weir::sockets::read_words, bytes);
      break;
    default:
      same_again(weir::sockets::read_return, bytes);
  }
  return 0;
}
