// This process's NIC and everything it needs from the operating system: the "progress engine".
//
// NicProcess owns the shared segment and the protection table (two memfds), attaches to the same-host link,
// turns neighbours into rnic::Peers and link messages into calls on the Adapter. There is one for each
// process, made on first use and kept until exit; a forked child gets its own on its first use.
//
// Threading: all functions from any thread. Callbacks of the link run on its progress thread, which also runs
// the deadlines of parked queue pairs.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "link/memory/mapping.hpp"
#include "link/memory/process_memory.hpp"
#include "link/same_host.hpp"
#include "rnic/adapter.hpp"
#include "verbs/nic/background_connects.hpp"
#include "verbs/nic/carrier/second_carrier.hpp"
#include "verbs/nic/completion_channels.hpp"
#include "verbs/nic/faulty_device.hpp"
#include "verbs/nic/group_memberships.hpp"
#include "verbs/nic/mover.hpp"
#include "verbs/nic/packet_network.hpp"
#include "verbs/nic/peers.hpp"
#include "verbs/nic/window_exports.hpp"

namespace weir::verbs {

// If set to anything, this process behaves as if the kernel refused process_vm_readv and writev.
inline constexpr char no_process_vm_variable[] = "WEIR_NO_PROCESS_VM";

// The seed and the weaknesses of `weir run --weak` (rnic/weak/weaknesses.hpp); unset: the NIC is not weak.
inline constexpr char weak_variable[] = "WEIR_WEAK";

class NicProcess final : public rnic::HostPort {
 public:
  // The process's instance; the first caller creates it. The error is text to print.
  static link::Result<NicProcess*> instance();
  static NicProcess* existing();  // nullptr before the first instance()
  static void end_silently();     // leave() is not called at exit

  struct Options {
    std::string directory = {};  // as link::SameHostLink::Options
    Tier first = Tier::kernel;   // how to reach neighbours, if it works
    std::size_t segment_bytes = rnic::segment_bytes;
    std::optional<hash::SipKey> wire_key = {};  // as rnic::HostPort::wire_key()
    std::optional<CarrierSetting> carrier = {};
    std::optional<faults::Plan> faults = {};
    std::optional<rnic::weak::Plan> weak = {};
  };
  // For tests, which hold several in one program.
  static link::Result<std::unique_ptr<NicProcess>> make(Options options);
  ~NicProcess() override;

  rnic::Adapter& adapter() { return *adapter_; }
  link::SameHostLink& link() { return *link_; }
  PacketNetwork& network() { return *network_; }
  GroupMemberships& groups() { return *groups_; }
  // nullptr: nothing goes wrong on purpose.
  FaultyDevice* faults() { return faults_.get(); }
  // nullptr: packets go by UDP alone.
  SecondCarrier* second_carrier() { return carrier_.get(); }

  // Says on standard error what the weak NIC did. It is weak.
  void report_weakness() const;
  // Says what the faults did, on standard error and where else it is wanted. There are faults.
  void report_faults() const;

  // Registers memory. errc::bad_address: not all of it is mapped. errc::not_enough_memory: the table is full.
  link::Result<std::uint32_t> register_memory(std::uint64_t addr, std::uint64_t length, std::uint64_t iova,
                                              std::uint32_t access, std::uint32_t pd);
  void deregister_memory(std::uint32_t key);

  CompletionChannels& channels() { return channels_; }
  link::Result<CompletionChannels::Opened> open_channel();
  void close_channel(std::uint32_t channel);

  using AsyncListener = std::function<void(rnic::AsyncEvent, rnic::QueuePair*, rnic::SharedReceiveQueue*)>;
  void on_async_event(AsyncListener listener);

  // At exit: sends the datagrams that wait for a connection, as far as one comes; tells neighbours that our
  // queue pairs are closed, and takes the slot out of the directory.
  void leave();

  // rnic::HostPort
  rnic::PeerPtr peer(rnic::Slot slot, Wait may_block) override;
  Reached reach(rnic::Slot slot, Ticket& ticket) override;
  Everybody everybody(Ticket& ticket) override;
  std::uint64_t now_ns() override;
  void wake_at(std::uint64_t deadline_ns) override;
  void watch_departures_at(std::uint64_t deadline_ns) override;
  void event_wanted() override {
    network_->event_wanted();
    if (carrier_) carrier_->event_wanted();
  }
  void raise_channel(std::uint32_t channel) override { channels_.raise(channel); }
  void async_event(rnic::AsyncEvent, rnic::QueuePair*, rnic::SharedReceiveQueue*) override;
  void receive_withheld(rnic::Qpn, std::uint32_t message) override;
  bool fault_in(void* at, std::uint64_t length, rnic::Use) override;
  bool traps_copies() override;
  void send_packets(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) override {
    packets_->send(route, runs);
  }
  void runs_are_lost(const rnic::PacketRoute& route) override;
  void path_is_silent(const rnic::PacketRoute& route, rnic::Qpn to) override {
    if (carrier_) carrier_->path_is_silent(route, to);
  }
  bool packets_wait() override { return network_->holds_packets(); }
  std::size_t packets_in_run(const rnic::PacketRoute& route) override {
    return packets_->packets_in_run(route);
  }
  const hash::SipKey* wire_key() const override { return wire_key_ ? &*wire_key_ : nullptr; }
  void receive_packets(const PacketSink& sink) override { packets_->receive(sink); }
  void expect_packets(const rnic::Gid& source) override { network_->admission().expect(source); }
  void expect_no_more(const rnic::Gid& source) override {
    if (network_) network_->admission().expect_no_more(source);  // queue pairs may outlive it
  }
  std::optional<rnic::Dropped> refuse_management(const rnic::PacketDatagram& datagram,
                                                 const wire::Packet& packet) override {
    return network_->admission().refuse_management(datagram, packet, link::Clock::now());
  }
  std::optional<rnic::Dropped> refuse_passing_on(rnic::Slot slot,
                                                 const rnic::PacketDatagram& datagram) override {
    return network_->admission().refuse_passing_on(slot, datagram, link::Clock::now());
  }
  void receive_management(const rnic::PacketDatagram& datagram, const wire::Packet& packet) override {
    network_->receive_management(datagram, packet);
  }
  std::uint64_t process_in(rnic::Slot slot) override { return network_->process_in(slot); }
  bool is_ours(const rnic::Gid& address) override { return network_->is_ours(address); }
  std::uint64_t known_process_in(rnic::Slot slot) override { return network_->known_process_in(slot); }
  void append_members(const rnic::Gid& group, std::vector<std::uint64_t>& processes) override {
    if (network_->members() != nullptr) network_->members()->append(group, link::Clock::now(), processes);
  }
  void pass_on(rnic::Slot slot, const rnic::PacketDatagram& datagram) override;

 private:
  NicProcess(link::Mapping segment, link::Mapping table, const Options& options);
  link::Result<void> attach(std::string directory, link::UniqueFd segment_fd, const link::UniqueFd& table_fd);
  link::Result<void> draw_numbers();
  void put_carrier_in_front(const CarrierSetting& setting);
  void put_faults_in_front(faults::Plan plan);
  void hand_over(link::Slot slot, link::UniqueFd connection, std::span<const std::byte> greeting);
  rnic::PeerPtr adopt(const link::NeighbourPtr& neighbour);
  void neighbour_gone(const link::NeighbourPtr& neighbour);
  void handle(const link::NeighbourPtr& from, link::Message&& message);
  void mover_runs(link::Neighbour& neighbour);
  void take_passed_on(std::span<const std::byte> body);
  void answer_window(const link::NeighbourPtr& from, std::uint32_t id);
  void answer_channel(const link::NeighbourPtr& from, std::uint32_t channel);
  void notify_neighbours(std::uint16_t kind, std::uint32_t number);

  link::Mapping segment_mapping_;
  link::Mapping table_mapping_;
  rnic::Segment segment_;
  const Tier first_;
  const std::optional<hash::SipKey> wire_key_;
  const bool catches_faults_;             // SIGSEGV and SIGBUS come to us
  std::optional<link::ProbePage> probe_;  // neighbours read and write it
  std::uint64_t secret_ = 0;              // where our numbers begin
  WindowExports exports_;
  std::unique_ptr<link::SameHostLink> link_;
  std::unique_ptr<rnic::Adapter> adapter_;
  CompletionChannels channels_;
  std::unique_ptr<Mover> mover_;
  std::unique_ptr<BackgroundConnects> connects_;
  std::unique_ptr<PacketNetwork> network_;
  std::unique_ptr<SecondCarrier> carrier_;  // in front of network_
  std::unique_ptr<FaultyDevice> faults_;    // in front of both
  PacketDevice* packets_ = nullptr;         // one of these three
  std::unique_ptr<GroupMemberships> groups_;
  std::atomic<bool> attached_ = false;  // adapter_ and self_ are there
  rnic::PeerPtr self_;

  std::mutex mutex_;
  std::array<std::shared_ptr<NeighbourPeer>, link::max_slots> peers_;
  AsyncListener async_listener_;
};

}  // namespace weir::verbs
