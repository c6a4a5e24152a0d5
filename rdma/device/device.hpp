// One RDMA device as an engine uses it: a protection domain, the memory pool, a completion channel, and
// completion queues that many connections share.
//
// A queue that overflows is broken for all its connections, so each connection reserves as many entries as it
// can ever have outstanding, and a connection that finds no room gets a new queue on the same channel. A
// reservation ends only after the queue pair is destroyed and the queue was seen empty: some devices leave a
// dead queue pair's completions in the queue. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rdma/device/memory_pool.hpp"
#include "rdma/settings.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::rdma {

struct SharedReceivesStats {
  std::size_t channels = 0;
  std::size_t posted_bytes = 0;
  std::size_t spare_bytes = 0;  // blocks that came back and wait to be reused
  std::uint64_t received = 0;
  std::uint64_t ran_low = 0;  // times that a slot stayed empty because the pool was at its cap

  SharedReceivesStats& operator+=(const SharedReceivesStats& other) {
    channels += other.channels;
    posted_bytes += other.posted_bytes;
    spare_bytes += other.spare_bytes;
    received += other.received;
    ran_low += other.ran_low;
    return *this;
  }
};

// Receives that many connections share: only their owner knows which connection a completion is for
// (channel/shared_receives.hpp).
class SharedCompletions {
 public:
  virtual ~SharedCompletions() = default;
  // Takes at most `most` completions and gives each to its connection. Returns how many there were.
  virtual std::size_t poll(std::size_t most) = 0;
  // Posts the missing receives again, as far as the pool has memory.
  virtual void refill() = 0;
  virtual SharedReceivesStats stats() const = 0;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  // What ends a sleep: any completion, or only one whose sender asked for it (IBA 11.4.2.2) or that failed.
  enum class Wake { any, solicited };
  struct Queue {
    CompletionQueue cq;
    Wake wake = Wake::any;
    std::uint32_t reserved = 0;
    std::uint32_t releasing = 0;            // of queue pairs that are gone; free once the queue is seen empty
    SharedCompletions* receives = nullptr;  // the owner of these completions, if it is the only one
  };

  // `context` belongs to the provider's library and outlives the device.
  static Result<std::unique_ptr<Device>> open(ibv_context* context, const EngineSettings& settings);

  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context() const { return context_; }
  const ProtectionDomain& pd() const { return pd_; }
  MemoryPool& pool() { return *pool_; }
  const MemoryPool& pool() const { return *pool_; }
  CompletionChannel& channel() { return channel_; }
  std::vector<std::unique_ptr<Queue>>& queues() { return queues_; }
  const ibv_device_attr& limits() const { return limits_; }
  // A key with which the device reads memory that was never registered. nullopt: it cannot, so whatever it is
  // to send has to be copied into the pool.
  std::optional<std::uint32_t> lkey_of_all_memory() const {
    return everything_ ? std::optional(everything_->lkey()) : std::nullopt;
  }

  // A queue with `entries` free, which are reserved for the caller until release().
  Result<Queue*> reserve(std::uint32_t entries, Wake wake = Wake::any);
  // A queue of its own, for receives that are themselves shared.
  Result<Queue*> reserve_alone(std::uint32_t entries, Wake wake);
  // Keeps something that connections share for as long as the device lives.
  void keep(std::unique_ptr<SharedCompletions> shared) { shared_.push_back(std::move(shared)); }
  const std::vector<std::unique_ptr<SharedCompletions>>& shared_receives() const { return shared_; }
  const EngineSettings& settings() const { return settings_; }
  static void release(Queue& queue, std::uint32_t entries) { queue.releasing += entries; }
  static void saw_empty(Queue& queue) {
    queue.reserved -= queue.releasing;
    queue.releasing = 0;
  }

 private:
  Device(ibv_context* context, const EngineSettings& settings, ProtectionDomain pd,
         CompletionChannel channel);
  Result<Queue*> make_queue(std::uint32_t entries, int wanted, Wake wake);

  ibv_context* context_;
  EngineSettings settings_;
  ibv_device_attr limits_{};
  ProtectionDomain pd_;
  std::optional<MemoryRegion> everything_;
  std::unique_ptr<MemoryPool> pool_;
  CompletionChannel channel_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<SharedCompletions>> shared_;
};

}  // namespace weir::rdma
