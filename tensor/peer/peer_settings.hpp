// The settings of a peer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tensor/link/tls_settings.hpp"
#include "tensor/say.hpp"

namespace weir::tensor {

struct PeerLimits {
  std::uint64_t max_bytes = std::uint64_t{64} << 30;        // of one fetch; larger versions are refused
  std::uint64_t read_from_bytes = std::uint64_t{64} << 10;  // larger versions the peer READs itself
  std::size_t most_known_names = 1 << 16;
};

struct PeerSettings {
  std::string token = {};  // that the hub asks for; the hub must know it, too
  TlsSettings tls = {};    // for a tls:// address
  PeerLimits limits = {};
  std::size_t spare_bytes = std::size_t{256} << 20;  // memory of past fetches kept for reuse
  std::chrono::milliseconds connect_timeout{5000};
  std::function<void(std::string_view line)> say = say_on_stderr;  // told if it falls back to TCP
};

}  // namespace weir::tensor
