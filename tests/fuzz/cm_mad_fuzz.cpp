// Parses any bytes as a message of the connection manager: an accepted message is the same after it has
// been encoded and parsed again.
#include <cstdlib>

#include "wire/mad.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::wire;
  const auto mad = parse_mad(std::as_bytes(std::span(data, size)));
  if (!mad) return 0;
  const auto bytes = encode_mad(*mad);
  const auto again = parse_mad(bytes);
  if (!again || encode_mad(*again) != bytes || again->message.index() != mad->message.index()) std::abort();
  if (const auto* req = std::get_if<CmReq>(&mad->message)) {
    if (req->qpn >> 24 != 0 || req->starting_psn >> 24 != 0) std::abort();
    (void)rdma_service(req->service_id);
    const auto start = std::span(req->private_data).first<rdma_cm_header_bytes>();
    if (const auto header = parse_rdma_cm_header(start)) {
      std::array<std::byte, rdma_cm_header_bytes> once{};
      encode_rdma_cm_header(*header, once);
      const auto twice = parse_rdma_cm_header(once);
      if (!twice || twice->source != header->source || twice->destination != header->destination)
        std::abort();
    }
  }
  return 0;
}
