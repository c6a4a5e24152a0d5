// The RDMA device for connections on this host. Each connection has a queue pair and a receive ring and
// connects to what the other end's offer names. A write is executed before it returns, so a byte is
// published only once it lies in the peer's ring. A write that fails has published nothing: its bytes
// and all later ones go by TCP.
//
// Rings lie in a few shared files, each twice as large as the one before: the NIC looks at all descriptors of
// the process once for each file, and the peer maps each once.
//
// A NIC has fewer completion queues than queue pairs. So links beyond `most_own_queues` share queues: a link
// that finds another's completion there keeps it for that link.
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
#include <vector>

#include "sockets/calls/held_signals.hpp"
#include "sockets/layout.hpp"
#include "sockets/link.hpp"

namespace weir::sockets {

class Device;

// The NIC says no farewell to its neighbours when the process ends: that takes system calls.
void device_ends_silently();

// The completion queue of one link, or of several.
struct Completions {
  explicit Completions(ibv_cq* queue) : cq(queue) {}
  ~Completions() { ibv_destroy_cq(cq); }
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  ibv_cq* const cq;
  SectionMutex mutex;  // taken only if it is shared
};

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
  std::optional<ibv_wc_status> completed();

  Device& device_;
  std::byte* ring_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::shared_ptr<Completions> completions_;
  bool shares_completions_ = false;
  std::optional<ibv_wc_status> kept_;  // found by another link; under the queue's mutex
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

  struct Chunk {
    std::byte* base = nullptr;
    std::vector<std::uint64_t> taken;  // one bit per ring
  };
  static constexpr std::size_t most_chunks = 8;
  static constexpr std::size_t rings_of(std::size_t chunk) { return std::size_t{64} << chunk; }
  bool map(Chunk& chunk, std::size_t rings) const;
  std::byte* take_ring();
  void give_ring(const std::byte* ring);

  static constexpr std::size_t most_own_queues = 2048, links_a_shared_queue = 64;
  bool find_completions(NearLink& link);

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* everything_ = nullptr;  // all memory: programs' buffers are sent in place
  std::array<std::uint8_t, 16> gid_{};
  std::uint32_t ring_bytes_ = 0;
  std::array<Chunk, most_chunks> chunks_{};
  std::size_t own_queues_ = 0;
  std::vector<std::weak_ptr<Completions>> shared_queues_;
};

}  // namespace weir::sockets
