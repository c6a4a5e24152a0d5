// A connection as seen by far_pairing.hpp, which finds its other end on another host and links the two. Only
// the service thread calls it.
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
  virtual bool was_accepted() const = 0;  // the other end connected, so it asks
  virtual const Table::Place& place() const = 0;
  virtual Conversation conversation(hash::SipKey key) const = 0;
  // Exactly one of these two is called, once.
  virtual void far_linked(std::unique_ptr<Link> link, std::uint64_t peer_ring_bytes) = 0;
  virtual void far_failed(Reason why) = 0;

 protected:
  ~FarEnd() = default;
};

}  // namespace weir::sockets
