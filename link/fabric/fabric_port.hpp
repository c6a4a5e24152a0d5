// The NIC's port to a simulated network, in place of link/udp: packets go to and come from the arena that
// `weir fabric run` shares with its programs (arena.hpp).
//
// Threading: all functions from any thread. Only one thread of all programs runs at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "link/fabric/inside.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

struct FabricRoute {
  fabric::Address source{}, destination{};
  std::uint8_t traffic_class = 0, hop_limit = 0;
  std::uint32_t queue_pair = 0;  // the number of the sending one
};

struct FabricArrival {
  std::span<const std::byte> bytes;  // valid inside the sink
  fabric::Address source{}, destination{};
  std::uint16_t source_port = 0;
  std::uint8_t traffic_class = 0, hop_limit = 0;
};

class FabricPort {
 public:
  // This process's; nullptr: it is not on a simulated network.
  static FabricPort* of_process() { return asked_.load(std::memory_order_acquire) ? found_ : find(); }
  FabricPort(const FabricPort&) = delete;
  FabricPort& operator=(const FabricPort&) = delete;

  // From now on packets to queue pairs of that slot come here; `owner` names what opened it. False: there are
  // no more descriptors, or it has been opened by that owner already, which is_of() tells.
  bool open(std::uint32_t slot, const void* owner);
  bool is_of(const void* owner) const { return owner_ == owner; }
  // Readable while packets wait that no polling thread takes.
  int descriptor() const { return arrived_.get(); }
  // For the report of a run in which nothing goes on.
  void describe_with(fabric::DescribeNic describe) const { inside_.describe_with(describe); }
  // The thread that waits on descriptor() says so, from itself.
  void watch();
  void drain();

  void send(const FabricRoute& route, std::uint16_t source_port, std::span<const std::byte> packet);
  using Sink = std::function<void(std::span<const FabricArrival>)>;
  // Hands over what has arrived; returns at once if there is nothing.
  void receive(const Sink& sink);
  bool holds_packets() const;

  // A completion queue was empty. Waits, unless packets were taken since the last call: their completions are
  // found by polling again. `first`: since a poll of the queue found something.
  void polled_in_vain(bool first);

 private:
  explicit FabricPort(const fabric::Inside& inside) : inside_(inside) {}
  static FabricPort* find();

  const fabric::Inside& inside_;
  UniqueFd arrived_;
  const void* owner_ = nullptr;
  bool took_ = false, first_ = false;  // by the thread that runs; since it waited
  static inline std::atomic<bool> asked_{false};
  static inline FabricPort* found_ = nullptr;  // written before asked_; never destroyed
};

}  // namespace weir::link
