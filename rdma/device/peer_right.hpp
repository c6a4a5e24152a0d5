// The right of one peer to one piece of our memory.
//
// An rkey by itself is no boundary between strangers: it answers through every queue pair of its protection
// domain, to whoever guesses its 32 bits. So the region grants a peer nothing; a type 2 memory window (IBA
// 10.6.7) that is bound to the connection's own queue pair does. The region still covers no more than what
// the peer may reach, because Soft-RoCE checks a window's queue pair and rights but only its region's bounds.
// The peer names the memory by random addresses, so one that was announced tells nothing about another, nor
// about where anything lies in this process. On a device without such windows that is all that separates
// peers: 35 random bits and the key (docs/decisions/0037).
//
// Order: made, then bind() posted on the queue pair before anything that carries the key, and destroyed
// before that queue pair is. Threading: the engine's.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rdma/device/device.hpp"
#include "rdma/error.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::rdma {

class PeerRight {
 public:
  PeerRight() = default;  // to nothing
  // `access`: remote_write or remote_read.
  static Result<PeerRight> make(const Device& device, std::span<std::byte> memory, Access access);

  // For reading, by every connection that is told of it: the random address and the key are all that guards
  // it.
  static Result<PeerRight> for_all_told(const Device& device, std::span<std::byte> memory);

  explicit operator bool() const { return objects_ != nullptr; }
  // Whether bind() is still to be posted.
  bool unbound() const { return objects_ != nullptr && objects_->window && !bound_; }
  // The request that grants the right, without wr_id and flags; from now on it counts as posted. What is
  // posted after it finds the window bound.
  ibv_send_wr bind();
  // As the peer names the memory's first byte, and as work requests of ours do that use lkey().
  std::uint64_t address() const { return address_; }
  std::uint32_t lkey() const { return objects_->region.lkey(); }
  std::uint32_t rkey() const { return rkey_; }

 private:
  static Result<PeerRight> enroll(const Device& device, std::span<std::byte> memory, Access access);

  struct Objects {
    MemoryRegion region;
    std::optional<MemoryWindow> window;  // destroyed first: a region with a window in it stays
  };
  std::unique_ptr<Objects> objects_;
  std::uint64_t address_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t rkey_ = 0;
  unsigned access_ = 0;
  bool bound_ = false;
};

}  // namespace weir::rdma
