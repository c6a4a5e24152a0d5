// Two NICs on two hosts, connected only by packets, which a test may drop, change or invent.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>

#include "two_nics.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::test {

constexpr Gid gid_of(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, last}; }

struct OnWire {
  std::vector<std::byte> bytes;
  Gid source, destination;
  std::uint16_t id = 0;
  std::uint32_t interface = 0;
  std::uint8_t traffic_class = 0;
  std::uint64_t process = 0;  // the number by which the receiver knows the sender
  Slot slot = 0;
};

class TwoHosts : public TwoNics {
 protected:
  TwoHosts() {
    a_nic.on_packets = [this](const PacketRoute& route, auto runs) { take(route, runs); };
    b_nic.on_packets = a_nic.on_packets;
  }
  // Ends may speak when they are destroyed, which is after our wire.
  ~TwoHosts() override { a_nic.on_packets = b_nic.on_packets = {}; }

  void connect_hosts(const EndpointOptions& a_options = {}, const EndpointOptions& b_options = {}) {
    a = std::make_unique<Endpoint>(a_nic, a_options);
    b = std::make_unique<Endpoint>(b_nic, b_options);
    connect_hosts(*a, *b);
  }
  void connect_hosts(Endpoint& of_a, Endpoint& of_b) {
    of_a.attributes().path = path_from_a();
    of_b.attributes().path = path_from_b();
    connect(of_a, of_b);
  }
  Path path_from_a() const {
    return {.via = Via::packets,
            .send_psn = 0xfffff0,
            .receive_psn = 77,
            .source = a_gid,
            .destination = b_gid,
            .interface = interface,
            .process = b_number};
  }
  Path path_from_b() const {
    Path path = path_from_a();
    path.process = a_number;
    std::swap(path.source, path.destination);
    std::swap(path.send_psn, path.receive_psn);
    return path;
  }

  void take(const PacketRoute& route, std::span<const PacketRun> runs) {
    for (const PacketRun& run : runs) {
      std::uint16_t id = 0;
      for (auto rest = run.bytes; !rest.empty(); ++id) {
        const auto packet = rest.first(std::min<std::size_t>(run.segment, rest.size()));
        rest = rest.subspan(packet.size());
        wire.push_back({{packet.begin(), packet.end()},
                        route.source,
                        route.destination,
                        id,
                        route.interface,
                        route.traffic_class});
        if (route.process == 0) continue;
        const bool to_a = route.process == a_number;
        wire.back().process = to_a ? b_number : a_number;
        wire.back().slot = (to_a ? b_nic : a_nic).slot();
      }
    }
  }

  // Until nothing is on the wire.
  void carry() {
    while (!wire.empty() || host.pump()) {
      if (wire.empty()) continue;
      const OnWire packet = std::move(wire.front());
      wire.pop_front();
      ++carried;
      if (!drop || !drop(packet)) deliver(packet);
    }
  }
  static PacketDatagram datagram_of(const OnWire& packet) {
    return {.bytes = packet.bytes,
            .source = packet.source,
            .destination = packet.destination,
            .source_port = wire::roce_port,
            .likely_id = packet.id,
            .interface = packet.interface,
            .traffic_class = packet.traffic_class,
            .process = packet.process,
            .slot = packet.slot};
  }
  void deliver(const OnWire& packet) {
    const PacketDatagram datagram = datagram_of(packet);
    (packet.destination == a_gid ? a_nic : b_nic).adapter().take_packets({&datagram, 1});
  }
  // Gives a changed packet a valid ICRC, or what one who has that key puts in its place.
  static void sign(OnWire& packet, const hash::SipKey* key = nullptr) {
    const std::span<const std::byte> bytes(packet.bytes);
    const wire::IcrcRoute icrc({.source = packet.source,
                                .destination = packet.destination,
                                .source_port = wire::roce_port,
                                .destination_port = wire::roce_port},
                               key);
    const auto sum = icrc.of(bytes.first(bytes.size() - wire::icrc_bytes), packet.id);
    std::ranges::copy(sum, packet.bytes.end() - wire::icrc_bytes);
  }
  // And until what was lost has been sent again.
  template <class Done>
  bool carry_until(const Done& done) {
    constexpr std::uint64_t step_ns = 1'000'000;
    for (int steps = 0; steps < 20'000; ++steps, host.advance(step_ns)) {
      carry();
      if (done()) return true;
    }
    return false;
  }

  Gid a_gid = gid_of(1), b_gid = gid_of(2);
  std::uint32_t interface = 0;
  std::uint64_t a_number = 0, b_number = 0;  // set: they are processes of two users of one host
  std::deque<OnWire> wire;
  std::function<bool(const OnWire&)> drop;
  std::size_t carried = 0;
};

}  // namespace weir::rnic::test
