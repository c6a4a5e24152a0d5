// The RDMA device for connections on this host. Each connection has a queue pair and a receive ring and
// connects to what the other end's offer names. A write is executed before it returns, so a byte is
// published only once it lies in the peer's ring. A write that fails has published nothing: its bytes
// and all later ones go by TCP.
//
// Threading: make_link() and destruction in the service thread; write() by one thread at a time (gate.hpp).
// After fork() a child opens a device of its own and never touches its parent's links.
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
#include "sockets/link.hpp"

namespace weir::sockets {

class Device;

class NearLink final : public Link {
 public:
  ~NearLink() override;

  const Offer& offer() const { return offer_; }
  // Connects to the peer's queue pair. False: that failed.
  bool connect(const Offer& peer);
  // Tests that the peer, which has connected too, can be written to. Service thread: it may take a while.
  bool reaches_peer();
  bool write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
             bool keep_cpu) override;
  bool read(void* into, std::size_t bytes, std::uint64_t place) override;
  const std::byte* ring() const override { return ring_; }

 private:
  friend class Device;
  explicit NearLink(Device& device) : device_(device) {}
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
  // Null: `why` holds the reason. Never closed: other threads may write until the process ends.
  static Device* open(std::uint32_t ring_bytes, std::string& why);

  std::unique_ptr<NearLink> make_link();

 private:
  friend class NearLink;
  Device() = default;
  ~Device() = default;
  std::byte* take_ring();

  static constexpr std::size_t rings_a_chunk = 64, most_chunks = 256;
  struct Chunk {
    std::byte* base = nullptr;
    std::uint64_t taken = 0;  // one bit per ring
  };
  void give_ring(const std::byte* ring);

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* everything_ = nullptr;  // all memory: programs' buffers are sent in place
  std::array<std::uint8_t, 16> gid_{};
  std::uint32_t ring_bytes_ = 0;
  std::array<Chunk, most_chunks> chunks_{};
};

}  // namespace weir::sockets
