// Parses a control message of a peer. A parsed message must survive being encoded and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "rdma/stream/control_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace rdma = weir::rdma;
  const auto message = rdma::parse(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  const rdma::ControlBytes wire = rdma::encode(*message);
  if (rdma::parse(wire) != message) std::abort();
  return 0;
}
