// A host for the NIC's tests: any number of Adapters in one process, with memory, time and wake-ups
// under the test's control.
//
// Nothing here runs by itself: messages between NICs (kicks, faults, CQ events) wait until pump(), deadlines
// until advance(). So a test chooses every interleaving, and no test needs to sleep. A region whose table
// entry has a window is reached through Peer::window (like shared memory), any other region through
// Peer::write/read (like private memory).
//
// Threading: pump(), advance() and creation from the test's thread; the data path from any thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "rnic/adapter.hpp"

namespace weir::rnic::test {

class Host;

struct AsyncReport {
  AsyncEvent event;
  QueuePair* qp;
  SharedReceiveQueue* srq;
};

// One process: its segment, its table and its adapter.
class Nic final : public HostPort {
 public:
  Nic(Host& host, Slot slot);
  ~Nic() override;

  Adapter& adapter() { return *adapter_; }
  Slot slot() const { return slot_; }

  PeerPtr peer(Slot slot, Wait may_block) override;
  Reached reach(Slot slot, Ticket& ticket) override;
  Everybody everybody(Ticket& ticket) override;
  std::uint64_t now_ns() override;
  void wake_at(std::uint64_t deadline_ns) override;
  void raise_channel(std::uint32_t channel) override;
  void async_event(AsyncEvent, QueuePair*, SharedReceiveQueue*) override;
  void receive_withheld(Qpn, std::uint32_t message) override { withheld.push_back(message); }
  bool fault_in(void* at, std::uint64_t length, Use) override;
  bool traps_copies() override { return false; }
  void send_packets(const PacketRoute& route, std::span<const PacketRun> runs) override {
    if (on_packets) on_packets(route, runs);
  }
  std::size_t packets_in_run(const PacketRoute&) override { return 64; }
  void path_is_silent(const PacketRoute& route, Qpn to) override {
    if (on_silence) on_silence(route, to);
  }
  void receive_packets(const PacketSink& sink) override {
    if (on_look) on_look(sink);
  }
  const hash::SipKey* wire_key() const override { return key; }
  std::optional<Dropped> refuse_management(const PacketDatagram&, const wire::Packet&) override {
    ++management_asked;
    return {};
  }
  std::optional<Dropped> refuse_passing_on(Slot, const PacketDatagram&) override {
    ++passing_on_asked;
    return {};
  }

  std::uint64_t process_in(Slot) override { return known_process; }
  std::uint64_t known_process_in(Slot) override { return known_process; }
  bool is_ours(const Gid& address) override { return address != foreign; }
  void append_members(const Gid& group, std::vector<std::uint64_t>& processes) override {
    if (const auto found = members.find(group); found != members.end())
      processes.insert(processes.end(), found->second.begin(), found->second.end());
  }

  // A process of another user, in any slot; absent by default.
  std::uint64_t known_process = 0;
  // By group, the processes of other users in it.
  std::map<Gid, std::vector<std::uint64_t>> members;
  Gid foreign{};  // an address of another host
  // What it sends to other hosts; by default that is lost.
  std::function<void(const PacketRoute&, std::span<const PacketRun>)> on_packets;
  // A requester's probes go unanswered.
  std::function<void(const PacketRoute&, Qpn)> on_silence;
  // What has arrived when it looks for packets; by default nothing.
  std::function<void(const PacketSink&)> on_look;
  // Whether that process is connected, for reach(); by default all are. `ticket` is 1 while it is not.
  std::function<bool(Slot)> on_reach;
  const hash::SipKey* key = nullptr;  // set before its first packet
  // How many packets the host was asked to take.
  std::size_t management_asked = 0, passing_on_asked = 0;
  // The messages that found a receive withheld.
  std::vector<std::uint32_t> withheld;
  // Runs behind the next look at the clock, or the next timer that is set; once. What other threads do there.
  std::function<void()> behind_clock, behind_timer;
  // Grows with the work that it does for queue pairs.
  std::atomic<std::uint64_t> clock_reads = 0;
  // On-demand memory that is missing; by default none is missing.
  std::function<bool(void* at, std::uint64_t length, Use)> on_fault_in;

  int channel_events(std::uint32_t channel);  // raised since the last call
  std::vector<AsyncReport> async_events();    // reported since the last call

 private:
  friend class Host;
  friend class MemoryPeer;

  Host& host_;
  Slot slot_;
  std::byte* segment_memory_;
  std::byte* table_memory_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Adapter> adapter_;
  std::mutex mutex_;
  std::map<Slot, std::shared_ptr<class MemoryPeer>> peers_;
  std::map<std::uint32_t, int> raised_;
  std::vector<AsyncReport> async_;
};

class Host {
 public:
  Host() = default;
  ~Host();

  Nic& add_nic();
  // What a SIGKILL leaves: the process answers no more, its memory keeps its last contents; the others are
  // told when the messages are pumped.
  void kill(Nic&);
  // The next process moves into the slot of a killed one.
  Nic& replace(Nic& killed);

  // Delivers the messages between NICs; true if there were any.
  bool pump();
  // Moves the clock, running the deadlines on the way.
  void advance(std::uint64_t ns);
  // The same for deadlines whose timers find nothing that waits for them.
  void advance_in_vain(std::uint64_t ns);
  std::uint64_t now_ns() const { return now_ns_; }

  // Called before a copy through Peer::write or Peer::read; may block. Anything but `done` is its outcome
  // instead.
  std::function<Peer::Transfer()> on_copy;

 private:
  friend class Nic;
  friend class MemoryPeer;
  void post(std::function<void()>);
  Nic* living(Slot slot);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::vector<std::unique_ptr<Nic>> dead_;
  std::deque<std::function<void()>> messages_;
  std::multimap<std::uint64_t, Slot> deadlines_;
  std::atomic<std::uint64_t> now_ns_{1'000'000'000};
  Slot next_slot_ = 1;
};

}  // namespace weir::rnic::test
