// How a connection's bytes reach a ring in the receiver's memory: on this host (device.hpp) or between hosts
// (far_link.hpp). Connection uses this alone, so that carriers change in the same way on both.
//
// On one host both ends see the same words (layout.hpp), and all that concerns the wire has nothing to do.
// Between hosts each end has a copy of the other's words, and a word has to be told. Then these hold:
// 1. What is told comes in order, and behind the bytes that it speaks of.
// 2. After placed() says yes, the peer knows all words that decide where a byte of the stream is; after
// settled(), also what this end wants and does.
//
// Threading: any thread of the process that made it; write() by one thread at a time (gate.hpp).
#pragma once

#include <sys/uio.h>

#include <cerrno>
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

  // Copies `bytes` of `pieces`, from `skip` on, into the peer's ring at `place`, which they do not wrap
  // around. `keep_cpu`: the peer uses this very CPU, and is not to get it for that.
  virtual bool write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
                     bool keep_cpu) = 0;
  // Reads the peer's ring: what we wrote there.
  virtual bool read(void* into, std::size_t bytes, std::uint64_t place) = 0;
  virtual const std::byte* ring() const = 0;

  virtual bool is_far() const { return false; }
  virtual bool takes_more() const { return true; }  // false: write() later
  virtual void tell() {}                            // words of this end have changed
  virtual void look() {}                            // for words of the peer
  virtual bool placed() const { return true; }
  virtual bool settled() const { return true; }
  virtual bool all_arrived() { return true; }          // what was written lies in the peer's ring
  virtual bool lost() const { return false; }          // the peer cannot be reached any more
  virtual FarArrivals* arrivals() { return nullptr; }  // what to look at, and to sleep on, for what comes
};

// At its end what was read is told, if it is due. Null: nothing to do. Keeps errno.
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
