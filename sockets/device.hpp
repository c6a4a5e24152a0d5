// The RDMA device as connections use it: a queue pair and a receive ring for each, connected by what the
// other end's offer says. A write is executed before it returns, so that a byte is published only when it
// lies in the peer's ring, and a write that fails has published nothing: that byte and all behind it go by
// TCP.
//
// Threading: make() and destroy from the service thread; write() by one thread at a time (gate.hpp). After
// fork() a child has to open a device of its own, and never touches its parent's links.
#pragma once

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sockets/layout.hpp"

namespace weir::sockets {

class Device;

class Link {
 public:
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const Offer& offer() const { return offer_; }
  // To the peer's queue pair. False: it could not be.
  bool connect(const Offer& peer);
  // Whether the peer, which is connected too, can be written to. In the service thread: it may take a while.
  bool reaches_peer();
  // Copies `bytes` of `pieces`, from `skip` on, into the peer's ring at `place`, which they do not wrap
  // around. `keep_cpu`: the peer uses this very CPU, and is not to get it for that.
  bool write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
             bool keep_cpu);
  // Reads the peer's ring.
  bool read(void* into, std::size_t bytes, std::uint64_t place);
  const std::byte* ring() const { return ring_; }

 private:
  friend class Device;
  explicit Link(Device& device) : device_(device) {}
  bool execute(ibv_send_wr& request, bool keep_cpu = false);

  Device& device_;
  std::byte* ring_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  bool another_outstanding_ = false;  // a request without a completion
  Offer offer_;
  Offer peer_;
};

class Device {
 public:
  // Null: `why` says why. Never closed: connections of other threads may write until the process ends.
  static Device* open(std::uint32_t ring_bytes, std::string& why);

  std::unique_ptr<Link> make_link();

 private:
  friend class Link;
  Device() = default;
  ~Device() = default;
  std::byte* take_ring();

  static constexpr std::size_t rings_a_chunk = 64, most_chunks = 256;
  struct Chunk {
    std::byte* base = nullptr;
    std::uint64_t taken = 0;  // a bit a ring
  };
  void give_ring(const std::byte* ring);

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* everything_ = nullptr;  // what is written is read where it lies
  std::array<std::uint8_t, 16> gid_{};
  std::uint32_t ring_bytes_ = 0;
  std::array<Chunk, most_chunks> chunks_{};
};

}  // namespace weir::sockets
