// The bytes of a version: immutable pieces of memory, and the device's registrations of them.
//
// Ownership: a Source shares whatever its pieces lie in (`owner`). Registrations are made when a device first
// needs them, and live as long as the Source. Threading: pieces are constant; registrations belong to the
// thread that serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rdma/device/device.hpp"
#include "rdma/device/peer_right.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

class Source {
 public:
  using Piece = std::span<const std::byte>;

  // Merges pieces that are adjacent in memory and drops empty ones.
  Source(std::vector<Piece> pieces, std::shared_ptr<const void> owner);

  std::span<const Piece> pieces() const { return pieces_; }
  std::uint64_t bytes() const { return bytes_; }
  std::vector<std::uint64_t> sizes() const;  // of the pieces
  // All pieces, concatenated. Errc::too_much.
  Result<std::vector<std::byte>> copy() const;

  // Each piece, for the device to read it on our behalf and for others to read it: both name its bytes by
  // the right's addresses.
  Result<std::span<const rdma::PeerRight>> rights_for(rdma::Device& device) const;

 private:
  struct Registered {
    std::shared_ptr<rdma::Device> device;  // must outlive the rights
    std::vector<rdma::PeerRight> rights;
  };

  std::vector<Piece> pieces_;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
  mutable std::map<const rdma::Device*, Registered> registered_;  // after owner_: destroyed first
};

}  // namespace weir::tensor
