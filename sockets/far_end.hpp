// A connection as far_pairing.hpp sees it, which finds its other end on another host and links the two.
// Called by the service thread alone.
#pragma once

#include <cstdint>
#include <memory>

#include "hash/siphash.hpp"
#include "sockets/beginning.hpp"
#include "sockets/ends.hpp"
#include "sockets/link.hpp"
#include "sockets/reason.hpp"
#include "sockets/table.hpp"

namespace weir::sockets {

class FarEnd {
 public:
  virtual const Ends& ends() const = 0;
  virtual bool was_accepted() const = 0;  // the other end connected, and asks
  virtual const Table::Place& place() const = 0;
  virtual Conversation conversation(hash::SipKey key) const = 0;
  // One of the two, once.
  virtual void far_linked(std::unique_ptr<Link> link, std::uint64_t peer_ring_bytes) = 0;
  virtual void far_failed(Reason why) = 0;

 protected:
  ~FarEnd() = default;
};

}  // namespace weir::sockets
