// Whether a hub serves a peer, and a peer believes its hub: both know the same token.
//
//   peer                                  hub
//   AUTH hello, a nonce
//                                         AUTH challenge, a nonce
//   AUTH proof, HMAC of "peer" and both
//                                         AUTH welcome, HMAC of "hub" and both
//
// HMAC-SHA-256 under the token, over the hub's generation too. The token itself is never sent, and neither
// end learns it from the other; a short one can be guessed from a conversation. Nothing is encrypted, and
// whoever sits between the two can read and change what follows (docs/threat-model.md).
//
// A hub without a token serves programs of its own host and peers with a certificate (tls_settings.hpp), and
// others only if it was told so (open). Pure: nonces are passed in. Threading: the link's.
#pragma once

#include <array>
#include <asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tensor/error.hpp"
#include "tensor/link/wire.hpp"

namespace weir::tensor {

using Nonce = std::array<std::byte, 32>;
Nonce fresh_nonce();
// Loopback, or an address of one of this host's interfaces.
bool is_of_this_host(const asio::ip::address& address);

// What a hub asks of its peers.
struct AccessSettings {
  std::string token = {};  // of every peer; empty: none
  bool open = false;       // without a token: serve other hosts, too
};

// A hub's view of one peer.
class HubAdmission {
 public:
  // `invited`: it is of this host, or has shown a certificate.
  HubAdmission(const AccessSettings& settings, std::uint64_t generation, bool invited)
      : token_(settings.token),
        generation_(generation),
        admitted_(token_.empty() && (settings.open || invited)) {}

  bool admits() const { return admitted_; }
  // What a request is told that is not admitted.
  Error refusal() const;
  // The answer to a message of the peer. Errc::refused: the proof is wrong, or there is no token.
  Result<wire::Auth> on(const wire::Auth& message, const std::function<Nonce()>& nonce);

 private:
  enum class State : std::uint8_t { fresh, challenged, over };
  const std::string token_;
  const std::uint64_t generation_;
  bool admitted_;
  State state_ = State::fresh;
  Nonce theirs_{}, ours_{};
};

// A peer's view of its hub.
class PeerAdmission {
 public:
  explicit PeerAdmission(std::string token) : token_(std::move(token)) {}

  bool wants_token() const { return !token_.empty(); }
  wire::Auth hello(const Nonce& nonce);
  // What to send next; nothing: the hub knows the token. Errc::refused: it does not.
  Result<std::optional<wire::Auth>> on(const wire::Auth& message, std::uint64_t generation);

 private:
  const std::string token_;
  wire::Auth::Step awaited_ = wire::Auth::Step::challenge;
  Nonce theirs_{}, ours_{};
};

}  // namespace weir::tensor
