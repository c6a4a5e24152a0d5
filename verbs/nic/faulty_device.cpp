#include "verbs/nic/faulty_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "faults/firing_report.hpp"

namespace weir::verbs {
namespace {

constexpr std::uint8_t congestion_experienced = 3;  // RFC 3168: the lower two bits

bool same_way(const rnic::PacketRoute& one, const rnic::PacketRoute& other) {
  return one.source == other.source && one.destination == other.destination &&
         one.traffic_class == other.traffic_class && one.hop_limit == other.hop_limit &&
         one.interface == other.interface && one.process == other.process && one.from == other.from;
}

std::uint64_t ns_between(link::Clock::time_point from, link::Clock::time_point to) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

}  // namespace

std::uint32_t FaultyDevice::Packet::own_qpn() const {
  return direction == faults::Direction::out ? route.from.value() : wire::destination_of(bytes);
}

void FaultyDevice::Packet::keep() {
  if (!kept.empty()) return;
  kept.assign(bytes.begin(), bytes.end());
  bytes = datagram.bytes = kept;
}

// Changes a bit. False: packets between users of one host have no ICRC to notice it by, so it is lost.
bool FaultyDevice::Packet::corrupt(std::uint64_t drawn) {
  constexpr std::size_t not_covered = 4;  // by the ICRC: this byte of the BTH is the switches'
  if (route.process != 0 || datagram.process != 0) return false;
  keep();
  std::size_t place = drawn / 8 % kept.size();
  if (place == not_covered) ++place;
  kept[place % kept.size()] ^= std::byte(1u << drawn % 8);
  return true;
}

FaultyDevice::FaultyDevice(faults::Plan plan, PacketDevice& behind, link::SameHostLink& link, Deliver deliver)
    : behind_(behind), link_(link), deliver_(std::move(deliver)), faults_(plan), calls_(std::move(plan)) {}

void FaultyDevice::queue_pair_made(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  faults_.queue_pair_made(qpn);
}

void FaultyDevice::first_psn(std::uint32_t qpn, faults::Direction direction, std::uint32_t psn) {
  const std::lock_guard lock(mutex_);
  faults_.first_psn(qpn, direction, psn);
}

std::optional<std::uint64_t> FaultyDevice::judge(faults::Call call, std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  return calls_.judge(call, faults_.order_of(qpn), ns_between(begun_, link::Clock::now()));
}

void FaultyDevice::schedule(const std::function<void(faults::Act)>& begin,
                            const std::function<void()>& port_is_up_again) {
  for (const faults::Fault& fault : faults_.plan().faults) {
    if (!faults::begins_by_itself(fault.act)) continue;
    const auto since = [&](std::uint64_t ns) { return begun_ + std::chrono::nanoseconds(ns); };
    link_.at(since(fault.where.from_ns.value_or(0)), [begin, act = fault.act] { begin(act); });
    if (fault.act == faults::Act::down && fault.where.until_ns)
      link_.at(since(*fault.where.until_ns), port_is_up_again);
  }
}

bool FaultyDevice::port_is_down() const {
  const std::uint64_t now_ns = ns_between(begun_, link::Clock::now());
  return std::ranges::any_of(faults_.plan().faults, [&](const faults::Fault& fault) {
    return fault.act == faults::Act::down && now_ns >= fault.where.from_ns.value_or(0) &&
           now_ns < fault.where.until_ns.value_or(UINT64_MAX);
  });
}

void FaultyDevice::finish() {
  std::vector<Packet> late;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [ticket, held] : held_)
      if (held.packet.direction == faults::Direction::out) late.push_back(std::move(held.packet));
    held_.clear();
  }
  send_onwards(late);
}

std::string FaultyDevice::report() const {
  const std::lock_guard lock(mutex_);
  std::string text = faults::report_for_people(faults_, calls_,
                                               {.name = ::program_invocation_short_name,
                                                .process = static_cast<int>(::getpid()),
                                                .now_ns = ns_between(begun_, link::Clock::now())});
  if (not_held_ != 0)
    text += "  " + std::to_string(not_held_) +
            " packets were neither delayed nor reordered: " + std::to_string(max_held) + " others waited\n";
  return text;
}

// ---- one packet

void FaultyDevice::pass(Packet packet, std::vector<Packet>& onwards) {
  const link::Clock::time_point now = link::Clock::now();
  const faults::Direction direction = packet.direction;
  const std::uint32_t qpn = packet.own_qpn();
  const faults::Verdict verdict =
      faults_.judge({.direction = direction, .own_qpn = packet.route.from.value(), .bytes = packet.bytes},
                    ns_between(begun_, now));
  if (verdict.drop) return;
  if (verdict.mark) {
    packet.route.traffic_class |= congestion_experienced;
    packet.datagram.traffic_class |= congestion_experienced;
  }
  if (verdict.corrupt && !packet.corrupt(verdict.drawn)) return;
  for (std::uint64_t copy = 0; copy <= verdict.copies; ++copy) {
    Packet one = packet;
    if (!one.kept.empty()) one.bytes = one.datagram.bytes = one.kept;
    const auto delay = std::chrono::nanoseconds(verdict.delay_ns);
    if (verdict.overtaken_by != 0 && hold(one, now + delay + longest_overtaking, verdict.overtaken_by))
      continue;
    if (verdict.overtaken_by == 0 && verdict.delay_ns != 0 && hold(one, now + delay, 0)) continue;
    onwards.push_back(std::move(one));
  }
  if (verdict.overtaken_by == 0) overtake(direction, qpn, onwards);
}

bool FaultyDevice::hold(Packet packet, link::Clock::time_point until, std::uint64_t overtaken_by) {
  if (held_.size() >= max_held) {
    ++not_held_;
    return false;
  }
  packet.keep();
  const Ticket ticket = next_ticket_++;
  Held& held = held_.emplace(ticket, Held{std::move(packet), overtaken_by}).first->second;
  held.packet.bytes = held.packet.datagram.bytes = held.packet.kept;
  link_.at(until, [this, ticket] { release(ticket); });
  return true;
}

// A packet of that queue pair goes past those that wait for it.
void FaultyDevice::overtake(faults::Direction direction, std::uint32_t qpn, std::vector<Packet>& onwards) {
  for (auto at = held_.begin(); at != held_.end();) {
    Held& held = at->second;
    const bool waits =
        held.to_be_overtaken_by != 0 && held.packet.direction == direction && held.packet.own_qpn() == qpn;
    if (!waits || --held.to_be_overtaken_by != 0) {
      ++at;
      continue;
    }
    onwards.push_back(std::move(held.packet));
    at = held_.erase(at);
  }
}

// On the link's thread.
void FaultyDevice::release(Ticket ticket) {
  std::vector<Packet> due;
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(ticket);
    if (found == held_.end()) return;  // overtaken
    due.push_back(std::move(found->second.packet));
    held_.erase(found);
  }
  if (due.front().direction == faults::Direction::out)
    send_onwards(due);
  else
    deliver_(due.front().datagram);
}

// ---- both ways

void FaultyDevice::send_onwards(std::span<const Packet> packets) {
  std::vector<rnic::PacketRun> runs;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    runs.push_back({packets[i].bytes, static_cast<std::uint16_t>(packets[i].bytes.size())});
    if (i + 1 < packets.size() && same_way(packets[i].route, packets[i + 1].route)) continue;
    behind_.send(packets[i].route, runs);
    runs.clear();
  }
}

void FaultyDevice::send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) {
  std::vector<Packet> onwards;
  {
    const std::lock_guard lock(mutex_);
    for (const rnic::PacketRun& run : runs)
      for (auto rest = run.bytes; !rest.empty();) {
        const auto bytes = rest.first(std::min<std::size_t>(run.segment, rest.size()));
        rest = rest.subspan(bytes.size());
        pass({.direction = faults::Direction::out, .route = route, .datagram = {}, .bytes = bytes}, onwards);
      }
  }
  send_onwards(onwards);
}

void FaultyDevice::receive(const rnic::HostPort::PacketSink& sink) {
  behind_.receive([&](std::span<const rnic::PacketDatagram> arrived) {
    std::vector<Packet> onwards;
    {
      const std::lock_guard lock(mutex_);
      for (const rnic::PacketDatagram& datagram : arrived)
        pass({.direction = faults::Direction::in, .route = {}, .datagram = datagram, .bytes = datagram.bytes},
             onwards);
    }
    std::vector<rnic::PacketDatagram> datagrams;
    datagrams.reserve(onwards.size());
    for (const Packet& packet : onwards) datagrams.push_back(packet.datagram);
    sink(datagrams);
  });
}

}  // namespace weir::verbs
