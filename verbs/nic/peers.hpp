// The two kinds of rnic::Peer: our own process (loopback), and a neighbour over the same-host link.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "link/memory/fault_in.hpp"
#include "link/memory/guarded_mapping.hpp"
#include "link/memory/mapping.hpp"
#include "link/memory/process_memory.hpp"
#include "link/same_host.hpp"
#include "rnic/adapter.hpp"
#include "verbs/nic/handover.hpp"

namespace weir::verbs {

// Loopback: our memory is simply there. Events go through the progress thread, never inline, because the
// caller may hold the lock of the very queue pair they are about.
class OwnPeer final : public rnic::Peer {
 public:
  OwnPeer(rnic::Slot slot, link::Mapping& segment, link::Mapping& table, rnic::Adapter& adapter,
          link::SameHostLink& link);

  std::byte* window(const rnic::TptEntry& entry, std::uint64_t addr, std::uint64_t length) override;
  Transfer write(std::span<const iovec> local, const Remote& remote) override;
  Transfer read(std::span<const iovec> local, const Remote& remote) override;
  void kick(rnic::Qpn parked) override;
  void raise_cq_event(std::uint32_t cq_index) override;
  void report_fault(rnic::Qpn theirs, rnic::Fault fault) override;
  void report_srq_limit(std::uint32_t srq_index) override;
  void report_withheld(rnic::Qpn theirs, std::uint32_t message) override;
  void report_closed(rnic::Qpn theirs) override;
  void return_receive(const TakenFrom& taken) override;

 private:
  rnic::Adapter& adapter_;
  link::SameHostLink& link_;
};

// What a NIC's greeting says beside its two files.
struct GreetingBody {
  std::uint64_t magic = rnic::segment_magic;
  std::uint64_t probe = 0;  // where its MemoryProbe is
  std::uint64_t token = 0;
};

// How its private memory is reached: by process_vm_* where the kernel lets us, else through its mover.
enum class Tier : std::uint8_t { kernel, mover };

class NeighbourPeer final : public rnic::Peer {
 public:
  // nullptr when its greeting is not that of a NIC of this version. `first`: not below this tier.
  static std::shared_ptr<NeighbourPeer> adopt(link::NeighbourPtr neighbour, link::SameHostLink& link,
                                              Tier first);

  const link::NeighbourPtr& neighbour() const { return neighbour_; }
  void died() { alive_.store(false, std::memory_order_release); }

  std::byte* window(const rnic::TptEntry& entry, std::uint64_t addr, std::uint64_t length) override;
  Transfer write(std::span<const iovec> local, const Remote& remote) override;
  Transfer read(std::span<const iovec> local, const Remote& remote) override;
  void kick(rnic::Qpn parked) override;
  void raise_cq_event(std::uint32_t cq_index) override;
  void report_fault(rnic::Qpn theirs, rnic::Fault fault) override;
  void report_srq_limit(std::uint32_t srq_index) override;
  void report_withheld(rnic::Qpn theirs, std::uint32_t message) override;
  void report_closed(rnic::Qpn theirs) override;
  void return_receive(const TakenFrom& taken) override;

  void mover_runs() { handover_.mover_runs(); }

  // Answers to what we asked for; on the progress thread.
  void window_arrived(std::uint32_t id, const link::UniqueFd& file, std::uint64_t bytes);
  void channel_arrived(std::uint32_t channel, link::UniqueFd eventfd);
  void channel_gone(std::uint32_t channel);
  // Takes the window out of use; the caller destroys it once the adapter is quiet on this peer.
  struct Window {
    std::uint32_t id;
    link::GuardedMapping mapping;  // of a file that is the program's
  };
  std::unique_ptr<Window> take_window(std::uint32_t id);

 private:
  NeighbourPeer(link::NeighbourPtr, link::SameHostLink&, const GreetingBody&, link::Mapping segment,
                link::Mapping table);
  void ask_for_window(std::uint32_t id);
  void use_mover();
  std::chrono::nanoseconds patience() const;
  Transfer retried_later(Transfer outcome);
  // After the kernel said no: to the mover, or what went wrong.
  std::optional<Transfer> refused(const char* call, std::span<const iovec> local, link::Touch touch);

  static constexpr std::uint32_t max_windows = 1024;
  link::NeighbourPtr neighbour_;
  link::SameHostLink& link_;
  const link::ProcessMemory memory_;
  std::atomic<Tier> tier_ = Tier::kernel;
  Handover handover_;
  const std::shared_ptr<std::atomic<bool>> retry_due_ = std::make_shared<std::atomic<bool>>(false);
  link::Mapping segment_mapping_;
  link::Mapping table_mapping_;
  std::array<std::atomic<Window*>, max_windows> windows_{};
  std::array<std::atomic<std::uint32_t>, max_windows> asked_{};
  std::atomic<bool> complained_{false};

  std::mutex mutex_;
  std::map<std::uint32_t, link::UniqueFd> channels_;
  std::map<std::uint32_t, bool> asked_channels_;

 public:
  ~NeighbourPeer() override;
};

}  // namespace weir::verbs
