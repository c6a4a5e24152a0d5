// A packet device in front of another: loses, doubles, delays, reorders, corrupts and marks packets on
// purpose, as faults/ decides (`weir run --faults`).
//
// Packets leave and arrive one by one here, since a packet's ICRC covers its place in a run.
//
// Bounded: max_held packets wait at a time; one more is not held, and counted.
// Threading: all functions from any thread; held packets go on from the link's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "faults/call_faults.hpp"
#include "faults/packet_faults.hpp"
#include "link/same_host.hpp"
#include "verbs/nic/packet_device.hpp"
#include "verbs/nic/slow_receiver.hpp"

namespace weir::verbs {

class FaultyDevice final : public PacketDevice {
 public:
  static constexpr std::size_t max_held = 4096;
  // How long a packet waits for others to overtake it, if none come.
  static constexpr std::chrono::milliseconds longest_overtaking{10};

  // Takes a packet that arrived earlier, on the link's thread.
  using Deliver = std::function<void(const rnic::PacketDatagram&)>;
  // Counts a time in which the port had packets to send and sent none.
  using CountWait = std::function<void(std::chrono::microseconds)>;
  // `key`: with which the NIC makes its ICRCs, or nullptr. `behind`, `link` and `key` outlive it. Call
  // nothing of it after the link has ended.
  FaultyDevice(faults::Plan plan, PacketDevice& behind, link::SameHostLink& link, Deliver deliver,
               SlowReceiver::Withhold withhold, CountWait count_wait, const hash::SipKey* key);

  void queue_pair_made(std::uint32_t qpn);
  void first_psn(std::uint32_t qpn, faults::Direction direction, std::uint32_t psn);
  // What faults of calls do to this call or completion, as faults::CallFaults. `qpn` 0: it is about none.
  bool concern(faults::Call call) const { return calls_.concern(call); }
  std::optional<std::uint64_t> judge(faults::Call call, std::uint32_t qpn);
  SlowReceiver& receiver() { return receiver_; }
  // Arms the faults that begin by themselves; both functions run on the link's thread. `end` is for those
  // that end, too.
  using Turn = std::function<void(std::size_t fault)>;
  void schedule(const Turn& begin, const Turn& end);
  const faults::Fault& fault(std::size_t index) const { return faults_.plan().faults[index]; }
  // The queue pairs that this fault is about, by number; and that it ended one.
  std::vector<std::uint32_t> queue_pairs_of(std::size_t fault) const;
  void ended(std::size_t fault, std::uint32_t qpn);
  bool port_is_down() const { return is_in_force(faults::Act::down); }
  bool gid_is_gone(std::size_t index) const { return is_in_force(faults::Act::gid_gone, index); }
  // How to find the index of an address of ours. Before the first packet.
  using GidIndex = std::optional<std::size_t> (*)(const rnic::Gid&);
  void set_gid_index(GidIndex find) { gid_index_ = find; }
  // A pause may be over: then what waited for its end leaves.
  void resume();
  // The packets that still wait leave now. What happened, for people.
  void finish();
  std::string report() const;
  // The same as JSON and as annotations of GitHub; firing_report.hpp says how they look.
  std::string report_as_json() const;
  std::string report_as_annotations(std::string_view faults_file) const;

  void send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) override;
  std::size_t packets_in_run(const rnic::PacketRoute&) const override { return 1; }
  void receive(const rnic::HostPort::PacketSink& sink) override;
  // Of packets that came otherwise: another process of this address got them and passed them on.
  void take_arrived(std::span<const rnic::PacketDatagram> arrived, const rnic::HostPort::PacketSink& sink);

 private:
  // One packet on its way out (`route`) or in (`datagram`).
  struct Packet {
    faults::Direction direction;
    rnic::PacketRoute route;
    rnic::PacketDatagram datagram;
    std::span<const std::byte> bytes;
    std::vector<std::byte> kept = {};  // where `bytes` are, once it waits or was changed

    std::uint32_t own_qpn() const;
    void keep();
    bool corrupt(std::uint64_t drawn);
    void alter(std::uint64_t drawn, const hash::SipKey* key);
  };
  struct Held {
    Packet packet;
    std::uint64_t to_be_overtaken_by;  // 0: it waits for a time
    bool paused = false;               // it waits for the end of a pause
  };
  using Ticket = std::uint64_t;

  bool is_in_force(faults::Act, std::optional<std::uint64_t> gid = {}) const;
  std::optional<std::uint64_t> own_gid_of(const Packet&) const;

  template <class Report>
  std::string reported(Report as) const;

  // With mutex_ held:
  void pass(Packet packet, std::vector<Packet>& onwards);
  bool hold(Packet packet, link::Clock::time_point until, std::uint64_t overtaken_by);
  void pause(Packet packet);
  void end_pause(std::vector<Packet>& onwards);
  void overtake(faults::Direction direction, std::uint32_t qpn, std::vector<Packet>& onwards);

  void release(Ticket ticket);
  void send_onwards(std::span<const Packet> packets);

  PacketDevice& behind_;
  link::SameHostLink& link_;
  const Deliver deliver_;
  const CountWait count_wait_;
  const hash::SipKey* const key_;
  GidIndex gid_index_ = nullptr;
  const link::Clock::time_point begun_ = link::Clock::now();
  SlowReceiver receiver_;
  mutable std::mutex mutex_;  // guards everything below
  faults::PacketFaults faults_;
  faults::CallFaults calls_;
  std::map<Ticket, Held> held_;
  Ticket next_ticket_ = 0;
  std::uint64_t not_held_ = 0, lost_in_pause_ = 0;
  link::Clock::time_point paused_since_;  // the first packet that waits now
  bool any_paused_ = false;
};

}  // namespace weir::verbs
