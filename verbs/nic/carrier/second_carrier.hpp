// A second way for packets to other hosts, in front of UDP: TCP streams (link/stream), for all paths or for
// those where UDP does not pass (carrier_choice.hpp). Nothing above it notices. A packet keeps its form and
// its ICRC, and what is lost while a path changes its carrier is sent again as any lost packet is.
//
// Groups, and other users of this host, stay with the device behind.
//
// Threading: all functions from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "link/stream/stream_port.hpp"
#include "rnic/adapter.hpp"
#include "verbs/nic/carrier/carrier_choice.hpp"
#include "verbs/nic/carrier/carrier_setting.hpp"
#include "verbs/nic/packet_device.hpp"
#include "verbs/nic/packet_watch.hpp"

namespace weir::verbs {

class SecondCarrier final : public PacketDevice, private PacketWatch::Port {
 public:
  // Another process's connection, with its greeting: from and to processes of this host.
  using HandOver =
      std::function<void(link::Slot to, link::UniqueFd connection, std::span<const std::byte> greeting)>;
  // Sends a management datagram from queue pair 1 by the device behind.
  using SendManagement = std::function<void(const rnic::PacketRoute&, std::span<const std::byte> mad)>;
  // All outlive it; nothing of it is called after the link has ended.
  SecondCarrier(const CarrierSetting& setting, PacketDevice& behind, link::SameHostLink& link,
                rnic::Adapter& adapter, HandOver hand_over, SendManagement send_management)
      : setting_(setting),
        behind_(behind),
        link_(link),
        adapter_(adapter),
        hand_over_(std::move(hand_over)),
        send_management_(std::move(send_management)) {}

  // From now on streams come from other hosts; further calls do nothing. The error is text to print.
  link::Result<void> open();
  // Before the link ends; afterwards nothing calls us any more.
  void stop();
  // The process ends.
  void finish();

  void send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) override;
  std::size_t packets_in_run(const rnic::PacketRoute& route) const override {
    return behind_.packets_in_run(route);
  }
  void receive(const rnic::HostPort::PacketSink& sink) override;
  void event_wanted() { watch_.event_wanted(); }

  // A requester's probes to that queue pair go unanswered.
  void path_is_silent(const rnic::PacketRoute& route, rnic::Qpn to);
  // Whether packets go there by a stream now. Whether a stream leads to that host.
  bool carries(const rnic::PacketRoute& route) const;
  bool leads_to(const rnic::Gid& peer) const;
  void adopt(link::UniqueFd connection, std::span<const std::byte> greeting);

 private:
  bool is_for_stream(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs);
  void look_for_stream(const rnic::PacketRoute& route, const link::StreamTarget& target);
  void ask_peer(const link::StreamPort::Ends& ends, link::Slot peer);
  void answer_peer(const link::StreamPort::Ends& ends, link::Slot peer);
  void judge(const link::StreamPort::Ends& ends, bool peer_hears);
  bool send_by_stream(const rnic::PacketRoute& route, const rnic::PacketRun& run);
  void receive_by_stream(link::StreamPort& port, const rnic::HostPort::PacketSink& sink);
  void explain_move(const rnic::Gid& peer) const;
  link::Slot owner_of(std::uint32_t service);

  void wait_for_packets(bool wanted) override;
  bool holds_packets() override;
  bool has_sleepers() override { return adapter_.has_armed_cq(); }
  void wake_at(std::uint64_t time_ns) override;
  bool lend_to_sleeper() override { return false; }
  void take_from_sleeper() override {}

  const CarrierSetting setting_;
  PacketDevice& behind_;
  link::SameHostLink& link_;
  rnic::Adapter& adapter_;
  const HandOver hand_over_;
  const SendManagement send_management_;
  CarrierChoice choice_;
  std::mutex opening_;
  std::unique_ptr<link::StreamPort> port_;  // set before open_
  std::atomic<link::StreamPort*> open_{nullptr};
  std::atomic<bool> spoke_{false};  // a stream is there, or on its way
  PacketWatch watch_{*this};
  // Inside port_->receive(), in which one thread is at a time.
  std::vector<rnic::PacketDatagram> arrived_;
  std::vector<std::pair<link::Slot, std::uint32_t>> listeners_;
  link::Clock::time_point listeners_read_{};
};

}  // namespace weir::verbs
