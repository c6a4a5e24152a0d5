// The way to other hosts: the UDP port of RoCEv2, opened when something first needs it.
//
// A program that only talks on its host opens no port (docs/verbs.md says what opens it). `WEIR_WIRE=0` says
// that none is ever opened.
//
// Threading: all functions from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "link/same_host.hpp"
#include "link/udp/udp_port.hpp"
#include "rnic/adapter.hpp"

namespace weir::verbs {

// An address for people.
std::string text_of(const rnic::Gid& gid);

// "0": no packets to other hosts.
inline constexpr char wire_variable[] = "WEIR_WIRE";

class PacketNetwork {
 public:
  // Both outlive it; the link's thread then calls the adapter when packets come.
  PacketNetwork(link::SameHostLink& link, rnic::Adapter& adapter) : link_(link), adapter_(adapter) {}
  ~PacketNetwork();
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  static bool switched_off();

  // From now on packets come. The error is fit to print.
  link::Result<void> open();
  // Whether a datagram queue pair of this NIC was ever ready (verbs/ibv/datagram_reception.hpp).
  void take_datagrams() { takes_datagrams_.store(true); }
  bool takes_datagrams() const { return takes_datagrams_.load(); }
  // A group on an interface, once the port is open: GroupMemberships counts who wants it. 0, or an errno as
  // of UdpPort::join().
  int join(const rnic::Gid& group, std::uint32_t interface);
  void leave(const rnic::Gid& group, std::uint32_t interface);
  // What rnic::HostPort asks of it.
  void send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs);
  std::size_t packets_in_run() const;
  void receive(const rnic::HostPort::PacketSink& sink);

  // Datagrams to queue pair 1, on the link's thread. Once, before open().
  using ManagementHandler =
      std::function<void(const rnic::Gid& source, const rnic::Gid& destination, std::span<const std::byte>)>;
  void on_management(ManagementHandler handler);
  void receive_management(const rnic::PacketDatagram& datagram, const wire::Packet& packet);
  // From queue pair 1 of that address of ours to queue pair 1 there; may be lost.
  void send_management(const rnic::PacketRoute& route, std::span<const std::byte> mad);

 private:
  void explain_failure(int error, const rnic::PacketRoute& route);

  link::SameHostLink& link_;
  rnic::Adapter& adapter_;
  std::mutex mutex_;
  std::unique_ptr<link::UdpPort> port_;
  std::atomic<link::UdpPort*> open_{nullptr};
  std::shared_ptr<const ManagementHandler> management_;
  std::atomic<std::uint32_t> management_psn_{0};
  std::atomic<bool> takes_datagrams_{false};
};

}  // namespace weir::verbs
