#include "verbs/nic/carrier/second_carrier.hpp"

#include <poll.h>

#include <algorithm>
#include <string>

#include "link/explain.hpp"
#include "link/udp/steering.hpp"
#include "rnic/datagrams/multicast.hpp"
#include "verbs/nic/carrier/packet_target.hpp"
#include "verbs/nic/packet_network.hpp"

namespace weir::verbs {
namespace {

constexpr std::chrono::milliseconds longest_finish{200}, listeners_stand{20};
// Between an answer by a stream and packets by UDP that left before it.
constexpr std::chrono::milliseconds longest_way{5};
constexpr int signs = 3;  // one may be lost

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(link::Clock::now().time_since_epoch()).count());
}

CarrierChoice::Path path_of(const rnic::PacketRoute& route) { return {route.source, route.destination}; }

link::StreamPort::Ends ends_of(const rnic::PacketRoute& route) {
  return {.own = route.source, .peer = route.destination, .interface = route.interface};
}

}  // namespace

link::Result<void> SecondCarrier::open() {
  const std::lock_guard lock(opening_);
  if (port_) return {};
  auto opened = link::StreamPort::open(
      {.port = setting_.port,
       .slot = link_.slot(),
       .key = adapter_.host().wire_key(),
       .owner = [this](std::uint32_t service) { return owner_of(service); },
       .hand_over = hand_over_,
       // From here on, because the other end may ask as soon as it has the challenge.
       .challenged =
           [this](const link::StreamPort::Ends& ends) {
             spoke_.store(true, std::memory_order_relaxed);
             choice_.joined({ends.own, ends.peer});
           },
       .opened =
           [this](const link::StreamPort::Ends& ends, link::Slot peer, bool dialled) {
             if (dialled) choice_.joined({ends.own, ends.peer});
             if (setting_.automatic && dialled) link_.post([this, ends, peer] { ask_peer(ends, peer); });
           },
       // Packets that have come by UDP are taken first, and answered: by the link's thread, as this one holds
       // the NIC's locks.
       .asked = [this](const link::StreamPort::Ends& ends,
                       link::Slot peer) { link_.post([this, ends, peer] { answer_peer(ends, peer); }); },
       .answered =
           [this](const link::StreamPort::Ends& ends, bool hears) {
             link_.at(link::Clock::now() + longest_way, [this, ends, hears] { judge(ends, hears); });
           },
       .ended = [this](const rnic::Gid& own, const rnic::Gid& peer) { choice_.move_back({own, peer}); },
       .explain =
           [](const std::string& why) {
             static std::atomic_flag said;
             if (link::first_time(said)) link::explain(why);
           },
       .tidy_later =
           [this](std::chrono::milliseconds after) {
             link_.at(link::Clock::now() + after, [this] { port_->tidy(); });
           }});
  if (!opened) return std::unexpected(opened.error());
  auto watched = link_.watch((*opened)->descriptor(), [this] {
    adapter_.receive_packets(rnic::Adapter::Patience::wait);
    watch_.woken(now_ns());
  });
  if (!watched) return watched;
  port_ = std::move(*opened);
  open_.store(port_.get(), std::memory_order_release);
  return {};
}

void SecondCarrier::stop() {
  if (port_) link_.unwatch(port_->descriptor());
}

void SecondCarrier::finish() {
  if (auto* const port = open_.load(std::memory_order_acquire)) port->finish(longest_finish);
}

// ---- out

bool SecondCarrier::carries(const rnic::PacketRoute& route) const {
  if (route.process != 0 || rnic::is_group(route.destination)) return false;
  return !setting_.automatic || choice_.goes_by_stream(path_of(route));
}

bool SecondCarrier::leads_to(const rnic::Gid& peer) const {
  const auto* const port = open_.load(std::memory_order_acquire);
  return port != nullptr && port->leads_to_host(peer);
}

// Of packets of the connection manager, each comes alone. The first of them that are repeated go by UDP in
// vain, while a stream is looked for.
bool SecondCarrier::is_for_stream(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) {
  if (carries(route)) return true;
  if (!setting_.automatic || route.process != 0 || runs.empty() || !is_management(runs.front().bytes) ||
      is_sign_of_life(runs.front().bytes) || !choice_.asks(path_of(route), link::Clock::now()))
    return false;
  if (const auto target = target_of(runs.front().bytes)) look_for_stream(route, *target);
  return false;
}

void SecondCarrier::look_for_stream(const rnic::PacketRoute& route, const link::StreamTarget& target) {
  auto* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return;
  if (const auto peer = port->peer_at(ends_of(route), target))
    link_.post([this, ends = ends_of(route), peer = *peer] { ask_peer(ends, peer); });
  else if (port->dial(ends_of(route), target))
    spoke_.store(true, std::memory_order_relaxed);
}

void SecondCarrier::path_is_silent(const rnic::PacketRoute& route, rnic::Qpn to) {
  if (!setting_.automatic || route.process != 0 || carries(route)) return;
  look_for_stream(route, {.slot = to.slot()});
}

// ---- doubts, on the link's thread

namespace {

rnic::PacketRoute route_of(const link::StreamPort::Ends& ends) {
  return {.source = ends.own,
          .destination = ends.peer,
          .interface = ends.interface,
          .from = rnic::Qpn(wire::cm_qpn)};
}

}  // namespace

void SecondCarrier::ask_peer(const link::StreamPort::Ends& ends, link::Slot peer) {
  if (!choice_.doubt({ends.own, ends.peer}, link::Clock::now())) return;
  for (int copy = 0; copy < signs; ++copy) send_management_(route_of(ends), sign_of_life(peer));
  port_->ask(ends, peer);
}

void SecondCarrier::answer_peer(const link::StreamPort::Ends& ends, link::Slot peer) {
  adapter_.receive_packets(rnic::Adapter::Patience::wait);
  for (int copy = 0; copy < signs; ++copy) send_management_(route_of(ends), sign_of_life(peer));
  port_->answer(ends, peer, choice_.answers({ends.own, ends.peer}));
}

void SecondCarrier::judge(const link::StreamPort::Ends& ends, bool peer_hears) {
  adapter_.receive_packets(rnic::Adapter::Patience::wait);
  const CarrierChoice::Path path{ends.own, ends.peer};
  const bool passes = peer_hears && choice_.hears(path);
  if (!passes && choice_.move(path)) explain_move(ends.peer);
}

void SecondCarrier::explain_move(const rnic::Gid& peer) const {
  static std::atomic_flag said;
  if (link::first_time(said))
    link::explain("packets to " + text_of(peer) + " go unanswered by UDP port 4791: they go over TCP port " +
                  std::to_string(setting_.port) +
                  " from now on; a firewall or NAT on the way is the likely reason");
}

// False: no stream leads there. A run may hold packets for several processes of the host.
bool SecondCarrier::send_by_stream(const rnic::PacketRoute& route, const rnic::PacketRun& run) {
  auto* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr || run.segment == 0) return false;
  const auto ends = ends_of(route);
  std::uint16_t packets = 0;
  for (auto rest = run.bytes; !rest.empty();) {
    const auto target = target_of(rest);
    std::size_t bytes = 0;
    const std::uint16_t first = packets;
    while (bytes < rest.size() && (bytes == 0 || target_of(rest.subspan(bytes)) == target)) {
      bytes += std::min<std::size_t>(run.segment, rest.size() - bytes);
      ++packets;
    }
    const link::StreamedRun part{.bytes = rest.first(bytes),
                                 .segment = run.segment,
                                 .first_id = first,
                                 .traffic_class = route.traffic_class,
                                 .hop_limit = route.hop_limit};
    const bool sent = target && port->send(ends, *target, {&part, 1});
    if (!sent && first == 0) return false;
    rest = rest.subspan(bytes);
  }
  return true;
}

void SecondCarrier::send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) {
  if (!is_for_stream(route, runs)) return behind_.send(route, runs);
  for (const rnic::PacketRun& run : runs) {
    if (send_by_stream(route, run)) continue;
    if (setting_.automatic) {
      behind_.send(route, {&run, 1});
      continue;
    }
    static std::atomic_flag said;
    if (link::first_time(said))
      link::explain("no stream of packets leads to " + text_of(route.destination) +
                    ": its program has ended, or takes none by TCP port " + std::to_string(setting_.port) +
                    " (it needs --carrier tcp or auto, too)");
  }
}

// ---- in

void SecondCarrier::receive(const rnic::HostPort::PacketSink& sink) {
  if (choice_.waits()) {
    behind_.receive([&](std::span<const rnic::PacketDatagram> packets) {
      CarrierChoice::Path last{};
      for (const rnic::PacketDatagram& packet : packets) {
        const CarrierChoice::Path path{packet.destination, packet.source};
        if (path != last && packet.process == 0) choice_.heard(path);
        last = path;
      }
      sink(packets);
    });
  } else {
    behind_.receive(sink);
  }
  auto* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return;
  // A poller leaves it to the link's thread to find that somebody begins to talk to us. But once two ends
  // meet, that thread would wait long for the lock that pollers take again and again.
  const bool polls = !link_.on_progress_thread();
  if (polls && !spoke_.load(std::memory_order_relaxed)) return;
  receive_by_stream(*port, sink);
  if (polls) watch_.polled(now_ns());
}

void SecondCarrier::receive_by_stream(link::StreamPort& port, const rnic::HostPort::PacketSink& sink) {
  port.receive([&](std::span<const link::StreamPort::Arrival> arrivals) {
    arrived_.clear();
    spoke_.store(true, std::memory_order_relaxed);
    for (const auto& [run, ends] : arrivals) {
      if (setting_.automatic) choice_.move({ends.own, ends.peer});
      rnic::PacketDatagram packet{.bytes = {},
                                  .source = ends.peer,
                                  .destination = ends.own,
                                  .source_port = wire::roce_port,
                                  .likely_id = run.first_id,
                                  .interface = ends.interface,
                                  .traffic_class = run.traffic_class,
                                  .hop_limit = run.hop_limit};
      for (auto rest = run.bytes; !rest.empty(); ++packet.likely_id) {
        packet.bytes = rest.first(std::min<std::size_t>(run.segment, rest.size()));
        rest = rest.subspan(packet.bytes.size());
        arrived_.push_back(packet);
      }
    }
    sink(arrived_);
  });
}

void SecondCarrier::adopt(link::UniqueFd connection, std::span<const std::byte> greeting) {
  if (auto* const port = open_.load(std::memory_order_acquire)) port->adopt(std::move(connection), greeting);
}

// Strangers ask as often as they like, and reading the listeners costs more than their connections.
link::Slot SecondCarrier::owner_of(std::uint32_t service) {
  const auto now = link::Clock::now();
  if (now - listeners_read_ >= listeners_stand) {
    listeners_ = link::Steering::listeners();
    listeners_read_ = now;
  }
  const auto found = std::ranges::find(listeners_, service, &std::pair<link::Slot, std::uint32_t>::second);
  return found != listeners_.end() ? found->first : link::Slot{0};
}

void SecondCarrier::wait_for_packets(bool wanted) {
  link_.heed(open_.load(std::memory_order_acquire)->descriptor(), wanted);
}

bool SecondCarrier::holds_packets() {
  auto* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return false;
  pollfd arrived{port->descriptor(), POLLIN, 0};
  return ::poll(&arrived, 1, 0) > 0;
}

void SecondCarrier::wake_at(std::uint64_t at_ns) {
  link_.at(link::Clock::time_point(std::chrono::nanoseconds(at_ns)), [this] { watch_.nap_over(now_ns()); });
}

}  // namespace weir::verbs
