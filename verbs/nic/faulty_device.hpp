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

namespace weir::verbs {

class FaultyDevice final : public PacketDevice {
 public:
  static constexpr std::size_t max_held = 4096;
  // How long a packet waits for others to overtake it, if none come.
  static constexpr std::chrono::milliseconds longest_overtaking{10};

  // Takes a packet that arrived earlier, on the link's thread.
  using Deliver = std::function<void(const rnic::PacketDatagram&)>;
  // `behind` and `link` outlive it. Call nothing of it after the link has ended.
  FaultyDevice(faults::Plan plan, PacketDevice& behind, link::SameHostLink& link, Deliver deliver);

  void queue_pair_made(std::uint32_t qpn);
  void first_psn(std::uint32_t qpn, faults::Direction direction, std::uint32_t psn);
  // What faults of calls do to this call or completion, as faults::CallFaults. `qpn` 0: it is about none.
  bool concern(faults::Call call) const { return calls_.concern(call); }
  std::optional<std::uint64_t> judge(faults::Call call, std::uint32_t qpn);
  // Arms the faults that begin by themselves; both functions run on the link's thread.
  void schedule(const std::function<void(faults::Act)>& begin, const std::function<void()>& port_is_up_again);
  bool port_is_down() const;
  // The packets that still wait leave now. What happened, for people.
  void finish();
  std::string report() const;

  void send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) override;
  std::size_t packets_in_run(const rnic::PacketRoute&) const override { return 1; }
  void receive(const rnic::HostPort::PacketSink& sink) override;

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
  };
  struct Held {
    Packet packet;
    std::uint64_t to_be_overtaken_by;  // 0: it waits for a time
  };
  using Ticket = std::uint64_t;

  // With mutex_ held:
  void pass(Packet packet, std::vector<Packet>& onwards);
  bool hold(Packet packet, link::Clock::time_point until, std::uint64_t overtaken_by);
  void overtake(faults::Direction direction, std::uint32_t qpn, std::vector<Packet>& onwards);

  void release(Ticket ticket);
  void send_onwards(std::span<const Packet> packets);

  PacketDevice& behind_;
  link::SameHostLink& link_;
  const Deliver deliver_;
  const link::Clock::time_point begun_ = link::Clock::now();
  mutable std::mutex mutex_;  // guards everything below
  faults::PacketFaults faults_;
  faults::CallFaults calls_;
  std::map<Ticket, Held> held_;
  Ticket next_ticket_ = 0;
  std::uint64_t not_held_ = 0;
};

}  // namespace weir::verbs
