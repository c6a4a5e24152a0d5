// How a connection's bytes reach a ring in the receiver's memory, on this host (device.hpp) or between hosts
// (far_link.hpp). Connection uses only this interface, so carriers change in the same way on both.
//
// On one host both ends see the same words (layout.hpp), so the functions about messages do nothing. Between
// hosts each end has a copy of the other's words and must send its own. Then these hold:
// 1. Words arrive in order, and after the bytes that they describe.
// 2. After placed() says yes, the peer knows all words that decide where a byte of the stream is. After
// settled() it also knows what this end wants and does.
//
// Threading: any thread of the process that made it; write() by one thread at a time (gate.hpp).
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::sockets {

class FarArrivals;

class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Copies `bytes` of `pieces`, starting at `skip`, into the peer's ring at `place`; they must not wrap
  // around. `keep_cpu`: the peer uses this very CPU and must not get it because of this write.
  virtual bool write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
                     bool keep_cpu) = 0;
  // Reads back from the peer's ring what we wrote there.
  virtual bool read(void* into, std::size_t bytes, std::uint64_t place) = 0;
  virtual const std::byte* ring() const = 0;

  virtual bool is_far() const { return false; }
  virtual bool takes_more() const { return true; }  // false: call write() later
  virtual void tell() {}                            // sends this end's changed words
  virtual void look() {}                            // looks for the peer's words
  virtual bool placed() const { return true; }
  virtual bool settled() const { return true; }
  virtual bool all_arrived() { return true; }  // what was written is in the peer's ring
  virtual bool lost() const { return false; }  // the peer can no longer be reached
  // For how long the peer's NIC has acknowledged nothing of what it should; 0: it has acknowledged all.
  virtual std::chrono::nanoseconds unanswered() { return {}; }
  virtual void stop() {}                               // on return nothing more arrives in the ring
  virtual FarArrivals* arrivals() { return nullptr; }  // what to look at and to sleep on for arrivals
};

// On destruction tells the peer what was read, if that is due. Null: does nothing. Keeps errno.
class TellsAtEnd {
 public:
  explicit TellsAtEnd(Link* link) : link_(link) {}
  ~TellsAtEnd() {
    if (link_ == nullptr) return;
    const int before = errno;
    link_->tell();
    errno = before;
  }
  TellsAtEnd(const TellsAtEnd&) = delete;
  TellsAtEnd& operator=(const TellsAtEnd&) = delete;

 private:
  Link* const link_;
};

}  // namespace weir::sockets
